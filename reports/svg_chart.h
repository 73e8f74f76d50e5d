#pragma once
#include <string>

#include "reports/chart.h"

namespace roofcast::reports {

/// An <svg> element for the page, shown without JavaScript or Chart.js and in print; colours come from the page's style
/// sheet (classes c0..c9, axis, grid, ink).
std::string svg_chart(const Chart& chart);

/// The same as a separate file, on white, with the title above and caption, source and command below.
std::string svg_file(const Chart& chart);

}  // namespace roofcast::reports
