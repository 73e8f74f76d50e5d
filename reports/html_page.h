#pragma once
#include <span>
#include <string>

#include "reports/chart.h"
#include "reports/result_file.h"

namespace roofcast::reports {

/// One self-contained file: text, tables, charts, the results' own keys, the command that reproduces it. Charts are
/// SVG, which Chart.js replaces if it was built in and JavaScript runs; print uses the SVG. `engine` is the engine as
/// WebAssembly (docs/wasm.md); empty: none. With it, results with a question can be repeated on the page with changes.
std::string html_page(std::span<const Result> results, std::span<const Chart> charts, const std::string& command,
                      const std::string& engine = "");

}  // namespace roofcast::reports
