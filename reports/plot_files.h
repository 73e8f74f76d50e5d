#pragma once
#include <span>
#include <string>
#include <vector>

#include "reports/chart.h"

namespace roofcast::reports {

enum class PlotFormat { kSvg, kPng };

/// Writes DIR/<id>.svg or .png of each chart and returns the paths; makes DIR. PNGs are made from the SVG by
/// rsvg-convert. Throws Unavailable without it, ConfigError when DIR cannot be written.
std::vector<std::string> write_plots(std::span<const Chart> charts, PlotFormat format, const std::string& directory);

}  // namespace roofcast::reports
