#pragma once
#include <span>
#include <string>
#include <vector>

#include "reports/chart.h"

namespace roofcast::reports {

enum class PlotFormat { kSvg, kPng, kCsv };

/// The numbers of a chart: one row per point, and per point of a band (`low`, `high`). Columns of the axes have the
/// axis titles, which contain the units. A bar that does not start at 0 starts at `low`.
std::string chart_csv(const Chart& chart);

/// Writes DIR/<id>.svg, .png or .csv for each chart and returns the paths; creates DIR. PNGs are made from SVG by
/// rsvg-convert. Throws Unavailable without it, ConfigError if DIR cannot be written.
std::vector<std::string> write_plots(std::span<const Chart> charts, PlotFormat format, const std::string& directory);

}  // namespace roofcast::reports
