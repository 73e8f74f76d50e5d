#include "reports/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "base/text.h"

namespace roofcast::reports {
namespace {

void include(AxisRange& range, double value, bool log) {
  if (!std::isfinite(value) || (log && value <= 0)) return;
  range.low = std::min(range.low, value), range.high = std::max(range.high, value);
}

AxisRange empty_range() { return {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}; }

/// A margin of 5 % (a tenth of a decade on a log axis); bars and linear axes of positive values start at 0.
AxisRange with_margin(AxisRange r, bool log, bool from_zero) {
  if (!(r.low <= r.high)) return log ? AxisRange{1, 10} : AxisRange{0, 1};
  if (log) {
    if (r.high / r.low < 1.5) return {r.low / 1.5, r.high * 1.5};
    const double margin = std::pow(r.high / r.low, 0.05);
    return {r.low / margin, r.high * margin};
  }
  if (from_zero && r.low > 0) r.low = 0;
  if (from_zero && r.high < 0) r.high = 0;
  double span = r.high - r.low;
  if (span <= 0) span = std::max(1e-12, std::abs(r.high));
  if (r.low != 0 || !from_zero) r.low -= 0.05 * span;
  if (r.high != 0 || !from_zero) r.high += 0.06 * span;
  return r;
}

AxisRange category_range(const Axis& axis) { return {-0.6, static_cast<double>(axis.categories.size()) - 0.4}; }

AxisRange with_limits(AxisRange range, const Axis& axis) {
  if (axis.low) range.low = *axis.low;
  if (axis.high) range.high = *axis.high;
  if (!(range.low < range.high)) range.high = range.low + 1;
  return range;
}

bool has_bars(const Chart& c) {
  return std::any_of(c.series.begin(), c.series.end(), [](const Series& s) { return s.shape == Shape::kBars; });
}

void include_bars(AxisRange& range, const Chart& c, bool log) {
  for (const Bar& bar : bars_of(c)) {
    include(range, bar.from, log);
    include(range, bar.to, log);
  }
}

/// The range of the axis along which bars grow, or of y.
AxisRange value_range(const Chart& c, const Axis& axis) {
  AxisRange r = empty_range();
  const auto edges = upper_edges(c);
  for (std::size_t s = 0; s < c.series.size(); ++s) {
    if (c.series[s].shape == Shape::kBars) continue;
    for (const double y : edges[s]) include(r, y, axis.log);
    if (c.series[s].shape == Shape::kArea) include(r, 0.0, axis.log);
  }
  for (const Band& band : c.bands) {
    for (const double y : band.low) include(r, y, axis.log);
    for (const double y : band.high) include(r, y, axis.log);
  }
  include_bars(r, c, axis.log);
  for (const ReferenceLine& line : c.lines) {
    if (line.vertical == c.horizontal) include(r, line.at, axis.log);
  }
  AxisRange range = with_margin(r, axis.log, true);
  const bool written = std::any_of(c.series.begin(), c.series.end(),
                                   [](const Series& s) { return s.shape == Shape::kBars && s.write_labels; });
  if (written) range.high = axis.log ? range.high * std::pow(range.high / range.low, 0.08) : range.high * 1.1;
  return with_limits(range, axis);
}

AxisRange position_range(const Chart& c, const Axis& axis) {
  if (!axis.categories.empty()) return category_range(axis);
  AxisRange r = empty_range();
  for (const Series& s : c.series) {
    for (const double x : s.x) include(r, x, axis.log);
  }
  for (const Band& band : c.bands) {
    for (const double x : band.x) include(r, x, axis.log);
  }
  for (const ReferenceLine& line : c.lines) {
    if (line.vertical != c.horizontal) include(r, line.at, axis.log);
  }
  // Lines may fill the width; points keep a margin.
  const bool lines_only = std::all_of(c.series.begin(), c.series.end(), [](const Series& s) {
    return s.shape == Shape::kLine || s.shape == Shape::kArea;
  });
  if (lines_only && r.low < r.high && !has_bars(c)) return with_limits(r, axis);
  const bool near_zero = r.low >= 0 && r.low < 0.3 * r.high;
  return with_limits(with_margin(r, axis.log, near_zero), axis);
}

std::vector<Tick> log_ticks(AxisRange range, int about) {
  const int first = static_cast<int>(std::floor(std::log10(range.low))),
            last = static_cast<int>(std::ceil(std::log10(range.high)));
  const int every = std::max(1, (last - first) / std::max(1, about));
  std::vector<Tick> ticks;
  const std::vector<double> steps =
      range.high / range.low < 400 ? std::vector<double>{1, 2, 5} : std::vector<double>{1};
  for (int e = first; e <= last; e += every) {
    for (const double step : steps) {
      const double at = step * std::pow(10.0, e);
      if (at >= range.low * (1 - 1e-9) && at <= range.high * (1 + 1e-9)) ticks.push_back({at, tick_text(at)});
    }
  }
  return ticks;
}

double nice_step(double span, int about) {
  const double raw = span / std::max(1, about), power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0, 10.0}) {
    if (factor * power >= raw * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

/// Indices that remain after thinning: extremes of each stretch for lines, even steps for points.
std::vector<std::size_t> kept_indices(const Series& s, std::size_t limit) {
  std::vector<std::size_t> kept;
  const std::size_t n = s.x.size();
  if (s.shape == Shape::kPoints) {
    for (std::size_t i = 0; i < limit; ++i) kept.push_back(i * n / limit);
    return kept;
  }
  const std::size_t stretches = std::max<std::size_t>(1, limit / 2 - 1);
  kept.push_back(0);
  for (std::size_t k = 0; k < stretches; ++k) {
    const std::size_t begin = k * n / stretches, end = (k + 1) * n / stretches;
    if (begin >= end) continue;
    const auto [low, high] = std::minmax_element(s.y.begin() + static_cast<std::ptrdiff_t>(begin),
                                                 s.y.begin() + static_cast<std::ptrdiff_t>(end));
    const auto a = static_cast<std::size_t>(low - s.y.begin()), b = static_cast<std::size_t>(high - s.y.begin());
    for (const std::size_t i : {std::min(a, b), std::max(a, b)}) {
      if (i > kept.back()) kept.push_back(i);
    }
  }
  if (kept.back() + 1 < n) kept.push_back(n - 1);
  return kept;
}

template <class T>
void keep(std::vector<T>& values, const std::vector<std::size_t>& indices) {
  if (values.empty()) return;
  std::vector<T> out;
  out.reserve(indices.size());
  for (const std::size_t i : indices) out.push_back(std::move(values[i]));
  values = std::move(out);
}

void keep(Series& s, const std::vector<std::size_t>& indices) {
  keep(s.x, indices), keep(s.y, indices), keep(s.base, indices), keep(s.size, indices), keep(s.labels, indices);
}

struct Box {
  double left, right, bottom, top;
  bool meets(const Box& o) const { return left < o.right && o.left < right && bottom < o.top && o.bottom < top; }
};

}  // namespace

int color_of(const Chart& chart, std::size_t series) {
  const int own = chart.series[series].color;
  return own >= 0 ? own % static_cast<int>(kPalette) : static_cast<int>(series % kPalette);
}

std::vector<LegendEntry> legend_of(const Chart& chart) {
  std::vector<LegendEntry> out;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const Series& s = chart.series[i];
    const bool line = s.shape == Shape::kLine || s.shape == Shape::kLinePoints;
    out.push_back({s.name, color_of(chart, i), line, s.dashed, false});
  }
  for (std::size_t i = 0; i < chart.bands.size(); ++i) {
    if (chart.bands[i].name.empty()) continue;  // the caption describes it
    const int own = chart.bands[i].color;
    out.push_back(
        {chart.bands[i].name, (own >= 0 ? own : static_cast<int>(i)) % static_cast<int>(kPalette), false, false, true});
  }
  if (out.size() < 2) out.clear();
  return out;
}

bool side_by_side(const Chart& chart) {
  if (chart.stacked) return false;
  std::set<double> taken;
  bool meet = false;
  for (const Series& s : chart.series) {
    if (s.shape != Shape::kBars) continue;
    if (!s.base.empty()) return false;
    for (const double x : s.x) meet = !taken.insert(x).second || meet;
  }
  return meet;
}

std::vector<Bar> bars_of(const Chart& chart) {
  std::vector<std::size_t> bar_series;
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    if (chart.series[s].shape == Shape::kBars) bar_series.push_back(s);
  }
  const bool grouped = side_by_side(chart);
  const double groups = grouped ? static_cast<double>(bar_series.size()) : 1.0;
  const double width = 0.8 / groups;
  std::vector<double> tops;  // top of the stack per category
  std::vector<Bar> bars;
  for (std::size_t slot = 0; slot < bar_series.size(); ++slot) {
    const Series& s = chart.series[bar_series[slot]];
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      Bar bar{bar_series[slot], i, s.x[i], width / 2 * (groups > 1 ? 0.94 : 1.0), 0, s.y[i]};
      if (grouped) bar.position += width * (static_cast<double>(slot) - (groups - 1) / 2);
      if (!s.base.empty()) bar.from = s.base[i];
      if (chart.stacked) {
        const auto category = static_cast<std::size_t>(std::max(0.0, s.x[i]));
        if (tops.size() <= category) tops.resize(category + 1, 0.0);
        bar.from = tops[category], bar.to = tops[category] += s.y[i];
      }
      bars.push_back(bar);
    }
  }
  return bars;
}

std::vector<std::vector<double>> upper_edges(const Chart& chart) {
  std::vector<std::vector<double>> edges;
  std::vector<double> top;
  for (const Series& s : chart.series) {
    edges.push_back(s.y);
    if (!chart.stacked || s.shape != Shape::kArea) continue;
    top.resize(std::max(top.size(), s.y.size()), 0.0);
    for (std::size_t i = 0; i < s.y.size(); ++i) edges.back()[i] = top[i] += s.y[i];
  }
  return edges;
}

AxisRange x_range(const Chart& chart) {
  return chart.horizontal ? value_range(chart, chart.x) : position_range(chart, chart.x);
}
AxisRange y_range(const Chart& chart) {
  return chart.horizontal ? position_range(chart, chart.y) : value_range(chart, chart.y);
}

std::string tick_text(double value) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size < 1e-3 || size >= 1e15) return fmt::format("{:.3g}", value);
  struct Prefix {
    double at;
    const char* text;
  };
  static constexpr std::array<Prefix, 4> kPrefixes{{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}}};
  for (const Prefix& p : kPrefixes) {
    if (size >= p.at * (1 - 1e-12)) return fmt::format("{:.4g}{}", value / (p.at == 1e4 ? 1e3 : p.at), p.text);
  }
  return fmt::format("{:.4g}", value);
}

std::vector<Tick> ticks_of(AxisRange range, bool log, int about) {
  if (log) return log_ticks(range, about);
  const double step = nice_step(range.high - range.low, about);
  std::vector<Tick> ticks;
  for (double i = std::ceil(range.low / step - 1e-9); i * step <= range.high + 1e-9 * step; ++i) {
    ticks.push_back({i * step, tick_text(std::abs(i) < 0.5 ? 0.0 : i * step)});
  }
  return ticks;
}

double fraction_of(double value, AxisRange range, bool log) {
  if (!log) return (value - range.low) / (range.high - range.low);
  return std::log(value / range.low) / std::log(range.high / range.low);
}

std::vector<PlacedLabel> place_labels(const Chart& chart, double char_width, double line_height) {
  std::vector<PlacedLabel> placed;
  std::vector<Box> taken;
  const AxisRange xr = x_range(chart), yr = y_range(chart);
  for (const Series& s : chart.series) {  // labels do not cover points
    if (s.shape != Shape::kPoints && s.shape != Shape::kLinePoints) continue;
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      const double x = fraction_of(s.x[i], xr, chart.x.log), y = fraction_of(s.y[i], yr, chart.y.log);
      taken.push_back({x - 0.8 * char_width, x + 0.8 * char_width, y - 0.35 * line_height, y + 0.35 * line_height});
    }
  }
  for (const Series& s : chart.series) {
    if (!s.write_labels || s.shape == Shape::kBars) continue;
    for (std::size_t i = 0; i < s.labels.size() && i < s.x.size(); ++i) {
      const double x = fraction_of(s.x[i], xr, chart.x.log), y = fraction_of(s.y[i], yr, chart.y.log);
      const double width = char_width * static_cast<double>(s.labels[i].size());
      for (int attempt = 0; attempt < 10; ++attempt) {
        const bool left = attempt % 2 == 0;  // the text begins right of the point
        // Above the point first: the lines of frontiers fall to the right.
        const double shift = std::array{0.7, 0.0, -0.7, 1.6, -1.6}[static_cast<std::size_t>(attempt / 2)] * line_height;
        const double at = left ? x + 1.2 * char_width : x - 1.2 * char_width;
        const Box box{left ? at : at - width, left ? at + width : at, y + shift - line_height / 2,
                      y + shift + line_height / 2};
        const bool inside = box.left >= 0 && box.right <= 1 && box.bottom >= 0 && box.top <= 1;
        if (!inside || std::any_of(taken.begin(), taken.end(), [&](const Box& b) { return b.meets(box); })) continue;
        taken.push_back(box);
        placed.push_back({at, y + shift, left, s.labels[i]});
        break;
      }
    }
  }
  return placed;
}

bool wants_log(std::span<const double> values) {
  constexpr double kMost = 20;
  if (values.empty()) return false;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return *low > 0 && *high > kMost * *low;
}

void thin(Chart& chart, std::size_t limit) {
  std::size_t before = 0;
  bool thinned = false;
  const std::size_t lines = std::max<std::size_t>(1, chart.series.size());
  for (Series& s : chart.series) {
    before += s.x.size();
    const std::size_t most = s.shape == Shape::kPoints ? limit : std::max(limit / 4, limit / lines);
    if (s.x.size() <= most || s.shape == Shape::kBars) continue;
    keep(s, kept_indices(s, most));
    thinned = true;
  }
  for (Band& band : chart.bands) {
    const std::size_t most = std::max(limit / 4, limit / chart.bands.size());
    if (band.x.size() <= most) continue;
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < most; ++i) kept.push_back(most > 1 ? i * (band.x.size() - 1) / (most - 1) : 0);
    keep(band.x, kept), keep(band.low, kept), keep(band.high, kept);
    thinned = true;
  }
  if (thinned) chart.thinned_from = before;
}

bool clean(Chart& chart) {
  const bool x_log = chart.horizontal ? chart.y.log : chart.x.log, y_log = chart.horizontal ? chart.x.log : chart.y.log;
  const auto shows = [](double v, bool log) { return std::isfinite(v) && std::abs(v) < 1e300 && (!log || v > 0); };
  for (Series& s : chart.series) {
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < s.x.size() && i < s.y.size(); ++i) {
      if (shows(s.x[i], x_log) && shows(s.y[i], y_log)) kept.push_back(i);
    }
    if (kept.size() != s.x.size() || s.x.size() != s.y.size()) keep(s, kept);
  }
  std::erase_if(chart.series, [](const Series& s) { return s.x.empty(); });
  std::erase_if(chart.bands, [&](const Band& b) {
    return b.x.empty() || std::any_of(b.low.begin(), b.low.end(), [&](double v) { return !shows(v, y_log); }) ||
           std::any_of(b.high.begin(), b.high.end(), [&](double v) { return !shows(v, y_log); });
  });
  std::erase_if(chart.lines,
                [&](const ReferenceLine& l) { return !shows(l.at, l.vertical ? chart.x.log : chart.y.log); });
  return !chart.series.empty();
}

}  // namespace roofcast::reports
