#pragma once
#include <span>
#include <string>
#include <vector>

#include "reports/chart.h"

namespace roofcast::reports {

enum class PlotFormat { kSvg, kPng, kCsv };

/// The numbers of a chart: a row for each point, and for each of a band (`low`, `high`). The columns of the axes bear
/// their titles, which have the units. A bar that does not start at 0 starts at `low`.
std::string chart_csv(const Chart& chart);

/// Writes DIR/<id>.svg, .png or .csv of each chart and returns the paths; makes DIR. PNGs are made from the SVG by
/// rsvg-convert. Throws Unavailable without it, ConfigError when DIR cannot be written.
std::vector<std::string> write_plots(std::span<const Chart> charts, PlotFormat format, const std::string& directory);

}  // namespace roofcast::reports
