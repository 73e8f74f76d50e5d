#include "reports/ascii_chart.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/html_text.h"

namespace roofcast::reports {
namespace {

constexpr std::string_view kMarks = "ox+*#@%&=~";
constexpr int kRows = 20, kMargin = 9;

char mark_of(const Chart& chart, std::size_t series) {
  return kMarks[static_cast<std::size_t>(color_of(chart, series))];
}

/// Characters of UTF-8 text.
std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/// Padded or truncated to `width` characters.
std::string padded(std::string_view text, std::size_t width) {
  std::string out = shortened(text, width);
  return out + std::string(width - characters(out), ' ');
}

class Grid {
 public:
  Grid(const Chart& chart, int width)
      : c_(chart),
        x_(x_range(chart)),
        y_(y_range(chart)),
        columns_(width - kMargin - 1),
        cells_(kRows, std::string(static_cast<std::size_t>(columns_), ' ')) {}

  std::string draw() {
    for (const ReferenceLine& r : c_.lines) reference(r);
    for (const Band& b : c_.bands) {
      polyline(b.x, b.low, '.');
      polyline(b.x, b.high, '.');
    }
    const auto edges = upper_edges(c_);
    for (std::size_t s = 0; s < c_.series.size(); ++s) {
      const Series& series = c_.series[s];
      if (series.shape != Shape::kPoints) polyline(series.x, edges[s], series.dashed ? '.' : mark_of(c_, s));
      for (std::size_t i = 0; i < series.x.size(); ++i) put(series.x[i], edges[s][i], mark_of(c_, s));
    }
    for (const PlacedLabel& l : place_labels(c_, 1.0 / columns_, 1.0 / kRows)) label(l);
    return text();
  }

 private:
  int column(double x) const { return static_cast<int>(std::lround(fraction_of(x, x_, c_.x.log) * (columns_ - 1))); }
  int row(double y) const {
    return kRows - 1 - static_cast<int>(std::lround(fraction_of(y, y_, c_.y.log) * (kRows - 1)));
  }
  void cell(int r, int c, char mark) {
    if (r >= 0 && r < kRows && c >= 0 && c < columns_)
      cells_[static_cast<std::size_t>(r)][static_cast<std::size_t>(c)] = mark;
  }
  void put(double x, double y, char mark) {
    if (inside(x, y)) cell(row(y), column(x), mark);
  }
  bool inside(double x, double y) const {
    return (!c_.x.log || x > 0) && (!c_.y.log || y > 0) && std::isfinite(x) && std::isfinite(y);
  }
  void polyline(const std::vector<double>& x, const std::vector<double>& y, char mark) {
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
      if (!inside(x[i], y[i]) || !inside(x[i + 1], y[i + 1])) continue;
      const int c1 = column(x[i]), r1 = row(y[i]), c2 = column(x[i + 1]), r2 = row(y[i + 1]);
      const int steps = std::min(1000, std::max({1, std::abs(c2 - c1), std::abs(r2 - r1)}));
      for (int k = 0; k <= steps; ++k) cell(r1 + (r2 - r1) * k / steps, c1 + (c2 - c1) * k / steps, mark);
    }
  }
  void reference(const ReferenceLine& r) {
    if (r.vertical ? !inside(r.at, y_.high) : !inside(x_.high, r.at)) return;
    if (r.vertical) {
      for (int i = 0; i < kRows; ++i) cell(i, column(r.at), ':');
    } else {
      for (int i = 0; i < columns_; ++i) cell(row(r.at), i, '-');
    }
    const int at = r.vertical ? column(r.at) + 2 : 1, line = r.vertical ? kRows - 1 : row(r.at);
    for (std::size_t i = 0; i < r.label.size(); ++i) {
      if ((static_cast<unsigned char>(r.label[i]) & 0x80U) == 0) cell(line, at + static_cast<int>(i), r.label[i]);
    }
  }
  void label(const PlacedLabel& l) {
    const int r = kRows - 1 - static_cast<int>(std::lround(l.y * (kRows - 1)));
    const int start =
        static_cast<int>(std::lround(l.x * (columns_ - 1))) - (l.left ? 0 : static_cast<int>(l.text.size()));
    for (std::size_t i = 0; i < l.text.size(); ++i) {
      if ((static_cast<unsigned char>(l.text[i]) & 0x80U) == 0) cell(r, start + static_cast<int>(i), l.text[i]);
    }
  }
  std::string text() const {
    std::vector<std::string> left(kRows);
    for (const Tick& t : ticks_of(y_, c_.y.log, 5)) {
      const int r = row(t.at);
      if (r >= 0 && r < kRows) left[static_cast<std::size_t>(r)] = t.text;
    }
    std::string out;
    for (std::size_t r = 0; r < kRows; ++r) {
      std::string cells = cells_[r];
      cells.erase(cells.find_last_not_of(' ') + 1);
      out += fmt::format("{:>{}} |{}\n", left[r], kMargin - 2, cells);
    }
    std::string below(static_cast<std::size_t>(columns_), ' ');
    for (const Tick& t : ticks_of(x_, c_.x.log, columns_ / 14)) {
      const auto at = static_cast<std::size_t>(std::max(0, column(t.at)));
      if (at + t.text.size() < below.size() &&
          below.find_first_not_of(' ', at == 0 ? 0 : at - 1) >= at + t.text.size() + 1)
        below.replace(at, t.text.size(), t.text);
    }
    below.erase(below.find_last_not_of(' ') + 1);
    return out + std::string(kMargin - 1, ' ') + "+" + std::string(static_cast<std::size_t>(columns_), '-') + "\n" +
           std::string(kMargin, ' ') + below + "\n";
  }

  const Chart& c_;
  AxisRange x_, y_;
  int columns_;
  std::vector<std::string> cells_;
};

/// One line per category; a stacked bar shows the mark of each series.
std::string bar_lines(const Chart& c, int width) {
  const std::vector<std::string>& names = c.horizontal ? c.y.categories : c.x.categories;
  std::size_t name_width = 4;
  for (const std::string& name : names) name_width = std::max(name_width, std::min<std::size_t>(name.size(), 32));
  const AxisRange range = c.horizontal ? x_range(c) : y_range(c);
  const bool log = c.horizontal ? c.x.log : c.y.log;
  const int columns = std::max(10, width - static_cast<int>(name_width) - 14);
  const auto at = [&](double v) {
    return static_cast<int>(
        std::lround(std::clamp(fraction_of(log ? std::max(v, range.low) : v, range, log), 0.0, 1.0) * columns));
  };
  const std::vector<Bar> bars = bars_of(c);
  std::string out;
  for (std::size_t k = 0; k < names.size(); ++k) {
    const std::size_t category = c.horizontal ? names.size() - 1 - k : k;
    std::string line(static_cast<std::size_t>(columns), ' ');
    double end = 0;
    const auto flush = [&](char) {
      line.erase(line.find_last_not_of(' ') + 1);
      out += fmt::format("{} |{} {}\n", padded(names[category], name_width), line, tick_text(end));
      line.assign(static_cast<std::size_t>(columns), ' ');
    };
    bool any = false;
    for (const Bar& b : bars) {
      if (static_cast<std::size_t>(std::lround(c.series[b.series].x[b.index])) != category) continue;
      if (any && !c.stacked) flush(' ');
      const int from = std::min(at(b.from), at(b.to)), to = std::max(at(b.from), at(b.to));
      for (int i = from; i < to; ++i) line[static_cast<std::size_t>(i)] = mark_of(c, b.series);
      end = b.to, any = true;
    }
    if (any) flush(' ');
  }
  return out;
}

/// In lines of at most `width` characters, broken at spaces.
std::string folded(const std::string& text, int width) {
  std::string out, line;
  for (const std::string& word : split(text, ' ')) {
    if (!line.empty() && characters(line) + 1 + characters(word) > static_cast<std::size_t>(width)) {
      out += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return out + line + "\n";
}

std::string legend(const Chart& c, int width) {
  if (c.series.size() < 2) return "";
  std::string out, line;
  for (std::size_t s = 0; s < c.series.size(); ++s) {
    const std::string entry = fmt::format("  {} {}", mark_of(c, s), clean_utf8(c.series[s].name));
    if (!line.empty() && characters(line) + characters(entry) > static_cast<std::size_t>(width)) {
      out += line + "\n";
      line.clear();
    }
    line += entry;
  }
  return out + line + "\n";
}

}  // namespace

std::string ascii_chart(const Chart& chart, int width) {
  width = std::max(width, 40);
  const bool bars =
      std::any_of(chart.series.begin(), chart.series.end(), [](const Series& s) { return s.shape == Shape::kBars; });
  const std::string axes =
      bars ? (chart.horizontal ? chart.x.title : chart.y.title) : fmt::format("{} | {}", chart.y.title, chart.x.title);
  return folded(clean_utf8(chart.title), width) + folded(axes, width) +
         (bars ? bar_lines(chart, width) : Grid(chart, width).draw()) + legend(chart, width);
}

}  // namespace roofcast::reports
