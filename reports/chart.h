#pragma once
// A chart before it is drawn: the source of the page, its SVG and the terminal's plot.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace roofcast {

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
  std::vector<double> base{};         ///< start of bars that do not start at 0 (a waterfall); else empty
  std::vector<double> size{};         ///< points: area relative to the largest, in [0, 1]; else empty
  std::vector<std::string> labels{};  ///< what a point or bar is; shown on hover
  bool write_labels = false;          ///< also beside the points, where there is room
  bool dashed = false;
  int color = -1;  ///< of the palette; -1 = the next
};

/// A filled area between two lines: percentiles, +-10 %. Without a name, the caption explains it.
struct Band {
  std::string name{};
  std::vector<double> x{}, low{}, high{};
  int color = -1;
};

/// A marker line: an objective, a capacity, a ridge.
struct ReferenceLine {
  bool vertical = false;
  double at = 0;
  std::string label{};
};

struct Chart {
  std::string id{};  ///< names the file and the anchor: [a-z0-9-]
  std::string title{};
  Axis x{}, y{};
  std::vector<Series> series{};
  std::vector<Band> bands{};
  std::vector<ReferenceLine> lines{};
  bool stacked = false;          ///< bars and areas
  bool horizontal = false;       ///< bars run to the right: categories are on y, values on x
  std::string caption{};         ///< what it shows, and what was left out
  std::string source{};          ///< source of its numbers
  std::string command{};         ///< command that makes it again
  std::size_t thinned_from = 0;  ///< points before thinning, 0 = all are drawn
};

/// A rectangle of a bar, in data units along its own direction.
struct Bar {
  std::size_t series = 0, index = 0;
  double position = 0, half_width = 0, from = 0, to = 0;
};
/// Whether bars of several series stand side by side: some category has more than one, and they are neither stacked nor
/// floating.
bool side_by_side(const Chart& chart);
/// Grouped side by side, stacked or floating.
std::vector<Bar> bars_of(const Chart& chart);

/// For stacked areas, the upper edge of each series, in the order of the series; other charts unchanged.
std::vector<std::vector<double>> upper_edges(const Chart& chart);

struct AxisRange {
  double low = 0, high = 1;
};
/// Range of the value axis, with a margin; a log axis keeps only positive values.
AxisRange x_range(const Chart& chart);
AxisRange y_range(const Chart& chart);

struct Tick {
  double at = 0;
  std::string text{};
};
std::vector<Tick> ticks_of(AxisRange range, bool log, int about);
std::string tick_text(double value);

/// Height of a vertical line's name, as a fraction of the plot: above areas, else at the bottom.
double label_height(const Chart& chart);

/// Position of a value in [0, 1] of its axis.
double fraction_of(double value, AxisRange range, bool log);

/// A label that overlaps none placed before it; positions are fractions of the plot.
struct PlacedLabel {
  double x = 0, y = 0;
  bool left = true;  ///< text begins at x; else it ends there
  std::string text{};
};
/// `char_width` and `line_height` in fractions of the plot's width and height.
std::vector<PlacedLabel> place_labels(const Chart& chart, double char_width, double line_height);

/// Keeps renderers fast: thins series of more than `limit` points. Lines keep the extremes of each stretch, points are
/// taken at even steps. `thinned_from` holds the original number.
inline constexpr std::size_t kMaxPoints = 2000;
void thin(Chart& chart, std::size_t limit = kMaxPoints);

/// Drops points that no axis can show (not finite; not positive on a log axis), then series without points; false when
/// nothing is left.
bool clean(Chart& chart);

/// One entry of a legend: each named series, then each band.
struct LegendEntry {
  std::string name{};
  int color = 0;
  bool line = false, dashed = false, faint = false;
};
std::vector<LegendEntry> legend_of(const Chart& chart);  ///< empty when a single series needs none

inline constexpr std::size_t kPalette = 10;
int color_of(const Chart& chart, std::size_t series);

}  // namespace roofcast
