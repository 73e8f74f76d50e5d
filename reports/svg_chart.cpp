#include "reports/svg_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "reports/html_text.h"

namespace roofcast::reports {
namespace {

constexpr double kWidth = 760, kCharacter = 6.3, kLine = 14, kTitle = 34;
constexpr std::size_t kFewPoints = 300;       // series with fewer points show their names
constexpr std::size_t kNoteCharacters = 145;  // of a line below the plot

/// Readable for the colour-blind and in print (contrast with white over 3); the same as in the page's style sheet.
constexpr std::array<std::string_view, kPalette> kColors{"#1f6fb4", "#c8453b", "#2a8f6a", "#8a5bb0", "#c27400",
                                                         "#0f8b9d", "#a0522d", "#5f6b7a", "#be3f8c", "#5c7a29"};

/// The style sheet of a file: the page's on white paper, without variables, which some SVG viewers lack.
std::string file_style() {
  std::string out =
      "text{font:11px \"DejaVu Sans\",Helvetica,Arial,sans-serif;fill:#16191d}.title{font-size:15px;font-weight:bold}"
      ".note{font-size:9.5px;fill:#555d66}.grid{stroke:#e4e8ec}.axis{fill:none;stroke:#555d66;stroke-width:0.8}"
      ".reference{stroke:#b00020;stroke-dasharray:6 4;stroke-width:1.3}text.reference{fill:#b00020;stroke:none}"
      ".line{fill:none;stroke-width:2;stroke-linejoin:round}.dashed{stroke-dasharray:6 4}.band{opacity:0.16}"
      ".area{opacity:0.85}.point{opacity:0.82}.dots{fill:none;stroke-width:3.2;stroke-linecap:round}";
  for (std::size_t i = 0; i < kColors.size(); ++i) {
    out += fmt::format(".line.c{0},.dots.c{0}{{stroke:{1}}}.band.c{0},.area.c{0},.bar.c{0},.point.c{0}{{fill:{1}}}", i,
                       kColors[i]);
  }
  return out;
}

/// Words packed into lines of at most `limit` characters.
std::vector<std::string> wrapped(const std::string& text, std::size_t limit) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  std::string word;
  while (words >> word) {
    word = shortened(word, limit);
    if (lines.empty() || lines.back().size() + 1 + word.size() > limit) {
      lines.push_back(word);
    } else {
      lines.back() += " " + word;
    }
  }
  return lines;
}

class Canvas {
 public:
  explicit Canvas(const Chart& chart) : c_(chart), x_(x_range(chart)), y_(y_range(chart)), legend_(legend_of(chart)) {
    double label_width = 0;
    for (const std::string& name : c_.y.categories)
      label_width = std::max(label_width, kCharacter * static_cast<double>(std::min<std::size_t>(name.size(), 34)));
    left_ = c_.y.categories.empty() ? 66 : 18 + label_width;
    lay_out_references();
    lay_out_legend();
    const double categories = static_cast<double>(std::max<std::size_t>(3, c_.y.categories.size()));
    const double row = side_by_side(c_) ? std::max(26.0, 15.0 * static_cast<double>(c_.series.size())) : 26.0;
    bottom_ = top_ + (c_.horizontal ? row * categories : 300);
    height_ = bottom_ + 48 + legend_height_;
  }

  double height() const { return height_; }

  /// The content of the <svg> element.
  std::string draw() {
    axes();
    bands();
    areas();
    bars();
    lines_and_points();
    references();
    labels();
    legend();
    return out_;
  }

 private:
  double px(double x) const { return left_ + fraction_of(x, x_, c_.x.log) * (right_ - left_); }
  double py(double y) const { return bottom_ - fraction_of(y, y_, c_.y.log) * (bottom_ - top_); }
  void text(double x, double y, std::string_view anchor, std::string_view what, std::string_view css = "ink") {
    out_ += fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", css, x, y, anchor,
                        html_text(what));
  }
  void line(double x1, double y1, double x2, double y2, std::string_view css) {
    out_ += fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>", css, x1, y1, x2,
                        y2);
  }

  /// Places names of vertical lines above the plot, in as many rows as needed.
  void lay_out_references() {
    std::vector<double> ends;  // end of the text in each row
    references_.assign(c_.lines.size(), {0, 0});
    std::vector<std::size_t> order(c_.lines.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return c_.lines[a].at < c_.lines[b].at; });
    for (const std::size_t i : order) {
      const ReferenceLine& r = c_.lines[i];
      Reference& at = references_[i];
      if (r.vertical && !r.label.empty() && r.at >= x_.low && r.at <= x_.high) {
        const double width = kCharacter * static_cast<double>(r.label.size());
        at.x = std::clamp(px(r.at) - width / 2, left_, std::max(left_, right_ - width));
        while (at.row < ends.size() && ends[at.row] > at.x) ++at.row;
        if (at.row == ends.size()) ends.push_back(0);
        ends[at.row] = at.x + width + kCharacter;
      }
    }
    top_ += kLine * static_cast<double>(ends.size());
  }

  void lay_out_legend() {
    double x = left_;
    int row = 0;
    for (const LegendEntry& e : legend_) {
      const double width = 28 + kCharacter * static_cast<double>(std::min<std::size_t>(e.name.size(), 48));
      if (x > left_ && x + width > right_) x = left_, ++row;
      legend_at_.push_back({x, row * 18.0});
      x += width;
    }
    legend_height_ = legend_.empty() ? 0 : (row + 1) * 18.0 + 6;
  }

  void axes() {
    std::size_t i = 0;
    if (c_.x.categories.empty()) {
      for (const Tick& t : ticks_of(x_, c_.x.log, 7)) {
        line(px(t.at), top_, px(t.at), bottom_, "grid");
        text(px(t.at), bottom_ + 16, "middle", t.text);
      }
    }
    const std::size_t room = static_cast<std::size_t>((right_ - left_) / kCharacter /
                                                      std::max(1.0, static_cast<double>(c_.x.categories.size())));
    for (const std::string& name : c_.x.categories) {
      text(px(static_cast<double>(i++)), bottom_ + 16, "middle", shortened(name, std::max<std::size_t>(3, room)));
    }
    if (c_.y.categories.empty()) {
      for (const Tick& t : ticks_of(y_, c_.y.log, 6)) {
        line(left_, py(t.at), right_, py(t.at), "grid");
        text(left_ - 7, py(t.at) + 4, "end", t.text);
      }
    }
    i = 0;
    for (const std::string& name : c_.y.categories)
      text(left_ - 7, py(static_cast<double>(i++)) + 4, "end", shortened(name, 34));
    out_ += fmt::format("<rect class=\"axis\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>", left_,
                        top_, right_ - left_, bottom_ - top_);
    text((left_ + right_) / 2, bottom_ + 36, "middle", c_.x.title);
    if (c_.y.categories.empty()) {
      out_ += fmt::format(
          "<text class=\"ink\" transform=\"translate(14 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
          (top_ + bottom_) / 2, html_text(c_.y.title));
    }
  }

  std::string points_of(const std::vector<double>& x, const std::vector<double>& y, bool backwards = false) const {
    std::string path;
    for (std::size_t k = 0; k < x.size(); ++k) {
      const std::size_t i = backwards ? x.size() - 1 - k : k;
      path += fmt::format("{:.1f},{:.1f} ", px(x[i]), py(y[i]));
    }
    return path;
  }

  /// Clips bands at axes with fixed ends.
  void bands() {
    if (c_.bands.empty()) return;
    out_ += fmt::format(
        "<clipPath id=\"clip-{0}\"><rect x=\"{1:.1f}\" y=\"{2:.1f}\" width=\"{3:.1f}\" height=\"{4:.1f}\"/></clipPath>"
        "<g clip-path=\"url(#clip-{0})\">",
        html_text(c_.id), left_, top_, right_ - left_, bottom_ - top_);
    for (std::size_t b = 0; b < c_.bands.size(); ++b) {
      const Band& band = c_.bands[b];
      const int color = band.color >= 0 ? band.color : static_cast<int>(b);
      out_ += fmt::format("<polygon class=\"band c{}\" points=\"{}{}\"/>", color % static_cast<int>(kPalette),
                          points_of(band.x, band.high), points_of(band.x, band.low, true));
    }
    out_ += "</g>";
  }

  void areas() {
    const auto edges = upper_edges(c_);
    std::vector<double> below;
    for (std::size_t s = 0; s < c_.series.size(); ++s) {
      if (c_.series[s].shape != Shape::kArea) continue;
      std::vector<double> floor = c_.stacked && below.size() == edges[s].size()
                                      ? below
                                      : std::vector<double>(edges[s].size(), std::max(0.0, y_.low));
      out_ += fmt::format("<polygon class=\"area c{}\" points=\"{}{}\"/>", color_of(c_, s),
                          points_of(c_.series[s].x, edges[s]), points_of(c_.series[s].x, floor, true));
      below = edges[s];
    }
  }

  void bars() {
    for (const Bar& b : bars_of(c_)) {
      const Series& s = c_.series[b.series];
      double x1, x2, y1, y2;
      const double from = c_.horizontal ? std::max(b.from, x_.low) : std::max(b.from, y_.low);
      if (c_.horizontal) {
        x1 = px(from), x2 = px(b.to), y1 = py(b.position + b.half_width), y2 = py(b.position - b.half_width);
      } else {
        x1 = px(b.position - b.half_width), x2 = px(b.position + b.half_width), y1 = py(from), y2 = py(b.to);
      }
      const std::string note =
          b.index < s.labels.size() ? s.labels[b.index] : fmt::format("{}: {}", s.name, tick_text(s.y[b.index]));
      out_ += fmt::format(
          "<rect class=\"bar c{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
          "height=\"{:.1f}\"><title>{}</title></rect>",
          color_of(c_, b.series), std::min(x1, x2), std::min(y1, y2), std::abs(x2 - x1), std::abs(y2 - y1),
          html_text(note));
      if (s.write_labels && c_.horizontal)
        text(std::max(x1, x2) + 5, py(b.position) + 4, "start", tick_text(s.y[b.index]));
    }
  }

  void lines_and_points() {
    for (std::size_t i = 0; i < c_.series.size(); ++i) {
      const Series& s = c_.series[i];
      const int color = color_of(c_, i);
      if (s.shape == Shape::kLine || s.shape == Shape::kLinePoints) {
        out_ += fmt::format("<polyline class=\"line c{}{}\" points=\"{}\"/>", color, s.dashed ? " dashed" : "",
                            points_of(s.x, s.y));
      }
      if (s.shape != Shape::kPoints && s.shape != Shape::kLinePoints) continue;
      if (s.size.empty() && s.x.size() > kFewPoints) {  // one path, round ends: a fifth of the bytes of as many circles
        out_ += fmt::format("<path class=\"dots c{}\" d=\"", color);
        for (std::size_t k = 0; k < s.x.size(); ++k) out_ += fmt::format("M{:.0f} {:.0f}h.1", px(s.x[k]), py(s.y[k]));
        out_ += "\"/>";
        continue;
      }
      for (std::size_t k = 0; k < s.x.size(); ++k) {
        const double radius = s.size.empty() ? 3.2 : 2.5 + 9 * std::sqrt(std::clamp(s.size[k], 0.0, 1.0));
        out_ += fmt::format("<circle class=\"point c{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"", color, px(s.x[k]),
                            py(s.y[k]), radius);
        out_ += k < s.labels.size() && s.x.size() <= kFewPoints
                    ? fmt::format("><title>{}</title></circle>", html_text(s.labels[k]))
                    : "/>";
      }
    }
  }

  void references() {
    for (std::size_t i = 0; i < c_.lines.size(); ++i) {
      const ReferenceLine& r = c_.lines[i];
      if (r.vertical) {
        if (r.at < x_.low || r.at > x_.high) continue;
        line(px(r.at), top_, px(r.at), bottom_, "reference");
        const double up = kLine * static_cast<double>(references_[i].row);
        if (!r.label.empty()) text(references_[i].x, top_ - 4 - up, "start", r.label, "reference");
      } else {
        if (r.at < y_.low || r.at > y_.high) continue;
        line(left_, py(r.at), right_, py(r.at), "reference");
        text(right_ - 5, py(r.at) - 5 < top_ + 8 ? py(r.at) + 13 : py(r.at) - 5, "end", r.label, "reference");
      }
    }
  }

  void labels() {
    for (const PlacedLabel& l : place_labels(c_, kCharacter / (right_ - left_), kLine / (bottom_ - top_))) {
      text(left_ + l.x * (right_ - left_), bottom_ - l.y * (bottom_ - top_) + 4, l.left ? "start" : "end", l.text);
    }
  }

  void legend() {
    for (std::size_t i = 0; i < legend_.size(); ++i) {
      const LegendEntry& e = legend_[i];
      const double x = legend_at_[i].first, y = bottom_ + 46 + legend_at_[i].second;
      if (e.line) {
        line(x, y + 5.5, x + 13, y + 5.5, fmt::format("line c{}{}", e.color, e.dashed ? " dashed" : ""));
      } else {
        out_ += fmt::format("<rect class=\"{} c{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"11\"/>",
                            e.faint ? "band" : "bar", e.color, x, y);
      }
      text(x + 17, y + 10, "start", shortened(e.name, 48));
    }
  }

  const Chart& c_;
  AxisRange x_, y_;
  std::vector<LegendEntry> legend_;
  double left_ = 66, right_ = kWidth - 14, top_ = 12, bottom_ = 0, height_ = 0, legend_height_ = 0;
  std::vector<std::pair<double, double>> legend_at_;
  struct Reference {
    double x;
    std::size_t row;
  };
  std::vector<Reference> references_;  ///< where the names of c_.lines begin, and in which row above the plot
  std::string out_;
};

}  // namespace

std::string svg_chart(const Chart& chart) {
  Canvas canvas(chart);
  return fmt::format("<svg viewBox=\"0 0 {} {:.0f}\" role=\"img\" aria-label=\"{}\">{}</svg>", kWidth, canvas.height(),
                     html_text(chart.title), canvas.draw());
}

std::string svg_file(const Chart& chart) {
  Canvas canvas(chart);
  std::vector<std::string> notes;
  for (const std::string& part : {chart.caption, chart.source.empty() ? "" : "Source: " + chart.source,
                                  chart.command.empty() ? "" : "Command: " + chart.command}) {
    for (std::string& line : wrapped(part, kNoteCharacters)) notes.push_back(std::move(line));
  }
  const double notes_at = kTitle + canvas.height() + kLine;
  const double height = notes_at + kLine * static_cast<double>(notes.size());
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1:.0f}\" viewBox=\"0 0 {0} {1:.0f}\">\n"
      "<style>{2}</style>\n<rect width=\"{0}\" height=\"{1:.0f}\" fill=\"#ffffff\"/>\n"
      "<text class=\"title\" x=\"12\" y=\"22\">{3}</text>\n<g transform=\"translate(0 {4})\">{5}</g>\n",
      kWidth, height, file_style(), html_text(chart.title), kTitle, canvas.draw());
  for (std::size_t i = 0; i < notes.size(); ++i) {
    out += fmt::format("<text class=\"note\" x=\"12\" y=\"{:.0f}\">{}</text>\n",
                       notes_at + kLine * static_cast<double>(i), html_text(notes[i]));
  }
  return out + "</svg>\n";
}

}  // namespace roofcast::reports
