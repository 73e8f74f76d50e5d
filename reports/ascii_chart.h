#pragma once
#include <string>

#include "reports/chart.h"

namespace roofcast::reports {

/// The chart in characters for a terminal `width` columns wide; plain ASCII but for the user's own words.
std::string ascii_chart(const Chart& chart, int width = 100);

}  // namespace roofcast::reports
