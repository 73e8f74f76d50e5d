#pragma once
// A chart before rendering: the common input of the page, its SVG and the terminal.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace roofcast::reports {

struct Axis {
  std::string title{};  ///< with the unit: "time to first token, ms"
  bool log = false;
  std::optional<double> low{}, high{};    ///< from the data if absent
  std::vector<std::string> categories{};  ///< names of 0, 1, 2, ... instead of numbers (bars)
};

enum class Shape { kLine, kPoints, kLinePoints, kBars, kArea };

struct Series {
  std::string name{};
  Shape shape = Shape::kLine;
  std::vector<double> x{}, y{};       ///< bars: x is the category's index
  std::vector<double> base{};         ///< bars that do not start at 0 (a waterfall); else empty
  std::vector<double> size{};         ///< points: area relative to the largest, in [0, 1]; else empty
  std::vector<std::string> labels{};  ///< description of each point or bar; shown on hover
  bool write_labels = false;          ///< also next to the points, where there is room; for bars, their values
  bool dashed = false;
  int color = -1;  ///< index in the palette; -1: the next one
};

/// A filled area between two lines: percentiles, +-10 %. Without a name the caption describes it.
struct Band {
  std::string name{};
  std::vector<double> x{}, low{}, high{};
  int color = -1;
};

/// A limit, a capacity or a ridge point.
struct ReferenceLine {
  bool vertical = false;
  double at = 0;
  std::string label{};
};

struct Chart {
  std::string id{};  ///< names the file and the anchor: [a-z0-9-]
  std::string title{};
  std::string heading{};  ///< title on a page that already names the deployment; empty: `title`
  Axis x{}, y{};
  std::vector<Series> series{};
  std::vector<Band> bands{};
  std::vector<ReferenceLine> lines{};
  bool stacked = false;                   ///< bars and areas
  bool horizontal = false;                ///< bars run to the right: categories are on y, values on x
  std::vector<std::string> held{}, at{};  ///< sweep keys that are constant in this chart, and their values
  std::vector<Chart> views{};             ///< the same chart for other values of `held`, selectable on a page
  std::string caption{};                  ///< what it shows and what was left out
  std::string source{};                   ///< source of its numbers
  std::string command{};                  ///< command that reproduces it
  std::size_t thinned_from = 0;           ///< points before thinning, 0 = all are drawn
};

/// A rectangle of a bar, in data units along the direction of the bar.
struct Bar {
  std::size_t series = 0, index = 0;
  double position = 0, half_width = 0, from = 0, to = 0;
};
/// Whether bars of several series are drawn side by side: some category has several, neither stacked nor floating.
bool side_by_side(const Chart& chart);
/// The rectangles of all bars: grouped side by side, stacked or floating.
std::vector<Bar> bars_of(const Chart& chart);

/// Stacked areas: the upper edge of each series, in the order of the series; others as they are.
std::vector<std::vector<double>> upper_edges(const Chart& chart);

struct AxisRange {
  double low = 0, high = 1;
};
/// The range that the value axis must cover, with a margin; a log axis uses only positive values.
AxisRange x_range(const Chart& chart);
AxisRange y_range(const Chart& chart);

struct Tick {
  double at = 0;
  std::string text{};
};
std::vector<Tick> ticks_of(AxisRange range, bool log, int about);
std::string tick_text(double value);

/// Position of a value on its axis, in [0, 1].
double fraction_of(double value, AxisRange range, bool log);

/// A label that overlaps no point and no other label; positions are fractions of the plot.
struct PlacedLabel {
  double x = 0, y = 0;
  bool left = true;  ///< text begins at x, else it ends there
  std::string text{};
};
/// `char_width` and `line_height` in fractions of the plot's width and height.
std::vector<PlacedLabel> place_labels(const Chart& chart, double char_width, double line_height);

/// Thins series to at most `limit` points (all lines together), but at least a quarter of it each, to keep renderers
/// fast. Lines keep the extremes of each stretch, points are taken at even steps. `thinned_from` records the original
/// number.
inline constexpr std::size_t kMaxPoints = 2000;
void thin(Chart& chart, std::size_t limit = kMaxPoints);

/// Whether a log axis is better: all values are positive, and the largest is over 20 times the smallest.
bool wants_log(std::span<const double> values);

/// Removes points that cannot be drawn (not finite; not positive on a log axis), then empty series; false if nothing is
/// left.
bool clean(Chart& chart);

/// One entry of a legend: every named series, then every band.
struct LegendEntry {
  std::string name{};
  int color = 0;
  bool line = false, dashed = false, faint = false;
};
std::vector<LegendEntry> legend_of(const Chart& chart);  ///< empty when one series says it all

inline constexpr std::size_t kPalette = 10;
int color_of(const Chart& chart, std::size_t series);

}  // namespace roofcast::reports
