#pragma once
// A picture before it is drawn: what the page, its SVG and the terminal all read.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace roofcast::reports {

struct Axis {
  std::string title{};  ///< with the unit: "time to first token, ms"
  bool log = false;
  std::optional<double> low{}, high{};    ///< found from the data when absent
  std::vector<std::string> categories{};  ///< names of 0, 1, 2, ... instead of numbers (bars)
};

enum class Shape { kLine, kPoints, kLinePoints, kBars, kArea };

struct Series {
  std::string name{};
  Shape shape = Shape::kLine;
  std::vector<double> x{}, y{};       ///< bars: x is the category's index
  std::vector<double> base{};         ///< bars that do not start at 0 (a waterfall); else empty
  std::vector<double> size{};         ///< points: area relative to the largest, in [0, 1]; else empty
  std::vector<std::string> labels{};  ///< what a point or bar is; shown on hover
  bool write_labels = false;          ///< beside the points too, where there is room; of bars, their values
  bool dashed = false;
  int color = -1;  ///< of the palette; -1 = the next
};

/// A filled stretch between two lines: percentiles, +-10 %. Without a name the caption says what it is.
struct Band {
  std::string name{};
  std::vector<double> x{}, low{}, high{};
  int color = -1;
};

/// An objective, a capacity, a ridge.
struct ReferenceLine {
  bool vertical = false;
  double at = 0;
  std::string label{};
};

struct Chart {
  std::string id{};  ///< names the file and the anchor: [a-z0-9-]
  std::string title{};
  std::string heading{};  ///< the title on a page that names the deployment already; empty: the title
  Axis x{}, y{};
  std::vector<Series> series{};
  std::vector<Band> bands{};
  std::vector<ReferenceLine> lines{};
  bool stacked = false;                   ///< bars and areas
  bool horizontal = false;                ///< bars run to the right: categories are on y, values on x
  std::vector<std::string> held{}, at{};  ///< keys of a sweep in which its points agree, and their values there
  std::vector<Chart> views{};             ///< the same for other values of `held`; a page offers them
  std::string caption{};                  ///< what it shows, what was left out
  std::string source{};                   ///< where its numbers come from
  std::string command{};                  ///< what makes it again
  std::size_t thinned_from = 0;           ///< points before thinning, 0 = all are drawn
};

/// A rectangle of a bar, in data units along its own direction.
struct Bar {
  std::size_t series = 0, index = 0;
  double position = 0, half_width = 0, from = 0, to = 0;
};
/// Whether bars of several series stand beside one another: some category has more than one, neither stacked nor
/// floating.
bool side_by_side(const Chart& chart);
/// Grouped side by side, stacked or floating.
std::vector<Bar> bars_of(const Chart& chart);

/// Stacked areas: the upper edge of each series, in the order of the series; others as they are.
std::vector<std::vector<double>> upper_edges(const Chart& chart);

struct AxisRange {
  double low = 0, high = 1;
};
/// What the values' axis must span, with a margin; a log axis keeps positive values alone.
AxisRange x_range(const Chart& chart);
AxisRange y_range(const Chart& chart);

struct Tick {
  double at = 0;
  std::string text{};
};
std::vector<Tick> ticks_of(AxisRange range, bool log, int about);
std::string tick_text(double value);

/// Position of a value in [0, 1] of its axis.
double fraction_of(double value, AxisRange range, bool log);

/// A label that meets no point and no other label; positions are fractions of the plot.
struct PlacedLabel {
  double x = 0, y = 0;
  bool left = true;  ///< text begins at x, else it ends there
  std::string text{};
};
/// `char_width` and `line_height` in fractions of the plot's width and height.
std::vector<PlacedLabel> place_labels(const Chart& chart, double char_width, double line_height);

/// Keeps every renderer quick: series of more than `limit` points, lines together, but no less than a quarter of it
/// each, lose some. Lines keep the extremes of each stretch, points are taken at even steps. What was there is said in
/// `thinned_from`.
inline constexpr std::size_t kMaxPoints = 2000;
void thin(Chart& chart, std::size_t limit = kMaxPoints);

/// Whether values span so much that a linear axis would press most of them to its foot: the largest is over 20 times
/// the smallest, and all are positive.
bool wants_log(std::span<const double> values);

/// Drops points that no axis can show (not finite; not positive on a log axis), then series without points; false
/// when nothing is left to draw.
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
