#pragma once
#include <string_view>

namespace roofcast::reports {

/// Files that the build embeds as strings (cmake/embed.cmake).
extern const std::string_view kPlotScript;    ///< reports/page/plot.js, which the explorer uses too
extern const std::string_view kPageScript;    ///< reports/page/page.js
extern const std::string_view kWhatIfScript;  ///< reports/page/what_if.js
extern const std::string_view kPageStyle;     ///< reports/page/page.css
extern const std::string_view kChartJs;       ///< Debian's libjs-chart.js; empty where the build did not find it

}  // namespace roofcast::reports
