#pragma once
// 90 % intervals of what a simulation measures.

#include <string>
#include <vector>

#include "sim/plan/scenario.h"
#include "sim/plan/system_spread.h"

namespace roofcast {

struct MetricInterval {
  std::string metric;  ///< a name of metrics_of: "mean_ttft_ms"
  double low = 0, high = 0;
};

/// Plays the scenario again under constants drawn from what their fits leave open. A draw is one lognormal factor for
/// each family of operators, as wide as the family's discrepancy, and one for what is no operator (25 %), as in
/// relative_spread; it holds for the whole run. A decode step and a prefill step are off by what the families weigh in
/// them under the load in `metrics`, so their errors go together as far as they share families; a mixed step is its
/// decodes and what the prompts add. To the 5th and 95th percentile of the draws comes what whole deployments were off
/// by (system_spread), as an independent cause.
/// Latencies and throughputs, of 40 stratified draws, of fewer above 100,000 requests. Empty above 500,000, which would
/// take minutes, and for the ideal roofline.
std::vector<MetricInterval> serving_intervals(const Scenario& scenario, const ServingMetrics& metrics);

/// The same of one metric ("ttft_p99", "tpot_mean") without playing the scenario again: the kernels' spread in the
/// steps that the metric is made of, and what whole deployments were off by. For a plan's many candidates.
LogSpread quick_spread(const Scenario& scenario, const ServingMetrics& metrics, const std::string& metric);

}  // namespace roofcast
