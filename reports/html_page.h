#pragma once
#include <span>
#include <string>

#include "reports/chart.h"
#include "reports/result_file.h"

namespace roofcast::reports {

/// One file that needs no network: words, tables, charts, the results' own keys, the command that makes it again.
/// Charts are drawn as SVG, which Chart.js replaces where it was built in and JavaScript runs; paper gets the SVG.
/// `engine` is the part of a page with the engine as WebAssembly (docs/wasm.md), empty: without. With it results that
/// say what they answer can be asked again on the page, with something changed.
std::string html_page(std::span<const Result> results, std::span<const Chart> charts, const std::string& command,
                      const std::string& engine = "");

}  // namespace roofcast::reports
