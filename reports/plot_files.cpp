#include "reports/plot_files.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"
#include "base/output_file.h"
#include "reports/html_text.h"
#include "reports/svg_chart.h"

namespace roofcast::reports {
namespace fs = std::filesystem;
namespace {

constexpr double kZoom = 2.5;  // pixels of a PNG for each unit of the SVG: 1900 across

void write_png(const Chart& chart, const fs::path& path) {
  const std::string temporary = fmt::format("{}.{}", path.string(), getpid()), svg = temporary + ".svg",
                    png = temporary + ".png";
  write_file("--png", svg, svg_file(chart));
  const int status = std::system(
      fmt::format("rsvg-convert --zoom {} --output {} {}", kZoom, shell_word(png), shell_word(svg)).c_str());
  std::error_code ignored, error;
  fs::remove(svg, ignored);
  if (status == 0) fs::rename(png, path, error);
  if (status == 0 && !error) return;
  fs::remove(png, ignored);
  throw ConfigError(SourceLocation{path.string(), 0, 0}, "cannot be written by rsvg-convert");
}

/// A value on an axis; for bars the name of the category.
std::string axis_text(const Axis& axis, double value) {
  const auto index = static_cast<std::size_t>(value);
  if (value >= 0 && index < axis.categories.size()) return csv_field(axis.categories[index]);
  return fmt::format("{}", value);
}

std::string title_of(const Axis& axis, const char* default_value) {
  return csv_field(axis.title.empty() ? default_value : axis.title);
}

/// The CSV rows of one view, each ending with the view's name.
std::string rows_of(const Chart& chart) {
  const Axis& along = chart.horizontal ? chart.y : chart.x;
  std::string out, drawn_for;
  for (const std::string& at : chart.at) drawn_for += "," + csv_field(at);
  for (const Series& s : chart.series) {
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      const std::string low = i < s.base.size() ? fmt::format("{}", s.base[i]) : "";
      out += fmt::format("{},{},{},{},,{}{}\n", csv_field(s.name), axis_text(along, s.x[i]), s.y[i], low,
                         i < s.labels.size() ? csv_field(s.labels[i]) : "", drawn_for);
    }
  }
  for (const Band& b : chart.bands) {
    for (std::size_t i = 0; i < b.x.size(); ++i)
      out +=
          fmt::format("{},{},,{},{},{}\n", csv_field(b.name), axis_text(along, b.x[i]), b.low[i], b.high[i], drawn_for);
  }
  return out;
}

}  // namespace

std::string chart_csv(const Chart& chart) {
  // Horizontal bars: their categories are on y.
  const Axis &along = chart.horizontal ? chart.y : chart.x, &value = chart.horizontal ? chart.x : chart.y;
  std::string out = fmt::format("series,{},{},low,high,label", title_of(along, "x"), title_of(value, "y"));
  for (const std::string& held : chart.held) out += "," + csv_field(held);
  out += "\n" + rows_of(chart);
  for (const Chart& view : chart.views) out += rows_of(view);
  return out;
}

std::vector<std::string> write_plots(std::span<const Chart> charts, PlotFormat format, const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error || !fs::is_directory(directory, error))
    throw ConfigError(SourceLocation{directory, 0, 0}, "is not a folder and cannot be created");
  const bool png = format == PlotFormat::kPng;
  if (png && std::system("command -v rsvg-convert >/dev/null 2>&1") != 0)
    throw Unavailable("rsvg-convert is missing: apt-get install librsvg2-bin; --svg works without");
  std::vector<std::string> paths;
  for (const Chart& chart : charts) {
    const bool csv = format == PlotFormat::kCsv;
    const fs::path path = fs::path(directory) / (chart.id + (png ? ".png" : csv ? ".csv" : ".svg"));
    if (png) {
      write_png(chart, path);
    } else {
      write_file(csv ? "--csv" : "--svg", path.string(), csv ? chart_csv(chart) : svg_file(chart));
    }
    paths.push_back(path.string());
  }
  return paths;
}

}  // namespace roofcast::reports
