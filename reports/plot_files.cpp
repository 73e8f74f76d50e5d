#include "reports/plot_files.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "base/error.h"
#include "reports/html_text.h"
#include "reports/svg_chart.h"

namespace roofcast {
namespace fs = std::filesystem;
namespace {

constexpr double kZoom = 2.5;  // pixels of a PNG for each unit of the SVG: 1900 across

void write_svg(const Chart& chart, const fs::path& path) {
  std::ofstream out(path, std::ios::binary);
  out << svg_file(chart);
  out.close();
  if (!out) throw ConfigError(Mark{path.string(), 0, 0}, "cannot be written");
}

void write_png(const Chart& chart, const fs::path& path) {
  fs::path svg = path;
  svg.replace_extension(fmt::format(".{}.svg", getpid()));  // beside the picture
  write_svg(chart, svg);
  const int status = std::system(
      fmt::format("rsvg-convert --zoom {} --output {} {}", kZoom, shell_word(path.string()), shell_word(svg.string()))
          .c_str());
  std::error_code ignored;
  fs::remove(svg, ignored);
  if (status != 0) throw ConfigError(Mark{path.string(), 0, 0}, "cannot be written by rsvg-convert");
}

}  // namespace

std::vector<std::string> write_plots(std::span<const Chart> charts, PlotFormat format, const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error || !fs::is_directory(directory, error))
    throw ConfigError(Mark{directory, 0, 0}, "is no folder and cannot be made one");
  const bool png = format == PlotFormat::kPng;
  if (png && std::system("command -v rsvg-convert >/dev/null 2>&1") != 0)
    throw Unavailable("rsvg-convert is missing: apt-get install librsvg2-bin; --svg works without");
  std::vector<std::string> paths;
  for (const Chart& chart : charts) {
    const fs::path path = fs::path(directory) / (chart.id + (png ? ".png" : ".svg"));
    png ? write_png(chart, path) : write_svg(chart, path);
    paths.push_back(path.string());
  }
  return paths;
}

}  // namespace roofcast
