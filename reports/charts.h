#pragma once
// Builds charts from results. Keys that a result always has are checked when it is read; a plot of optional keys
// (`intervals`, `speculation`) is left out if they are absent.

#include <span>
#include <string>
#include <vector>

#include "reports/chart.h"
#include "reports/result_file.h"

namespace roofcast::reports {

/// All plots that the results support, cleaned and thinned, with unique ids; `command` is the command of the report.
std::vector<Chart> charts_of(std::span<const Result> results, const std::string& command);

// One function per kind of result; each adds the charts that it can draw.
void add_estimate_charts(const Result& result, std::vector<Chart>& out);    // charts_estimate.cpp
void add_simulation_charts(const Result& result, std::vector<Chart>& out);  // charts_serving.cpp
void add_request_charts(const Result& result, std::vector<Chart>& out);
void add_sweep_charts(const Result& result, std::vector<Chart>& out);  // charts_sweep.cpp
void add_plan_charts(const Result& result, std::vector<Chart>& out);   // charts_plan.cpp
void add_services_charts(const Result& result, std::vector<Chart>& out);
void add_ladder_charts(const Result& result, std::vector<Chart>& out);
void add_validation_charts(const Result& result, std::vector<Chart>& out);  // charts_validation.cpp
void add_error_charts(const Result& result, std::vector<Chart>& out);       // of validate's JSON
void add_acceptance_charts(const Result& result, std::vector<Chart>& out);
void add_measured_run_charts(const Result& result, std::vector<Chart>& out);
void add_comparison_charts(std::span<const Result> results, std::vector<Chart>& out);  // charts_comparison.cpp

/// Output tokens per second and GPU against those per user, with the points that no other beats in both.
Chart pareto_chart(const std::string& id, const std::vector<ResultPoint>& points);
/// "tp 4, batch 8" from the keys that differ between points.
std::string point_label(const ResultPoint& point, std::span<const std::string> keys);
std::vector<std::string> varying_keys(const std::vector<ResultPoint>& points);
/// The last part of a dotted key in words: "max num seqs".
std::string words_of_key(const std::string& dotted_key);

}  // namespace roofcast::reports
