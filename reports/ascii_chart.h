#pragma once
#include <string>

#include "reports/chart.h"

namespace roofcast::reports {

/// The chart as text for a terminal `width` columns wide; plain ASCII except for the user's own strings.
std::string ascii_chart(const Chart& chart, int width = 100);

}  // namespace roofcast::reports
