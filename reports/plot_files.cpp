#include "reports/plot_files.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/output_file.h"
#include "reports/html_text.h"
#include "reports/svg_chart.h"

namespace roofcast::reports {
namespace fs = std::filesystem;
namespace {

constexpr double kZoom = 2.5;  // pixels of a PNG for each unit of the SVG: 1900 across

void write_png(const Chart& chart, const fs::path& path) {
  const std::string beside = fmt::format("{}.{}", path.string(), getpid()), svg = beside + ".svg",
                    png = beside + ".png";
  write_file("--png", svg, svg_file(chart));
  const int status = std::system(
      fmt::format("rsvg-convert --zoom {} --output {} {}", kZoom, shell_word(png), shell_word(svg)).c_str());
  std::error_code ignored, error;
  fs::remove(svg, ignored);
  if (status == 0) fs::rename(png, path, error);
  if (status == 0 && !error) return;
  fs::remove(png, ignored);
  throw ConfigError(Mark{path.string(), 0, 0}, "cannot be written by rsvg-convert");
}

}  // namespace

std::vector<std::string> write_plots(std::span<const Chart> charts, PlotFormat format, const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error || !fs::is_directory(directory, error))
    throw ConfigError(Mark{directory, 0, 0}, "is not a folder and cannot be created");
  const bool png = format == PlotFormat::kPng;
  if (png && std::system("command -v rsvg-convert >/dev/null 2>&1") != 0)
    throw Unavailable("rsvg-convert is missing: apt-get install librsvg2-bin; --svg works without");
  std::vector<std::string> paths;
  for (const Chart& chart : charts) {
    const fs::path path = fs::path(directory) / (chart.id + (png ? ".png" : ".svg"));
    png ? write_png(chart, path) : write_file("--svg", path.string(), svg_file(chart));
    paths.push_back(path.string());
  }
  return paths;
}

}  // namespace roofcast::reports
