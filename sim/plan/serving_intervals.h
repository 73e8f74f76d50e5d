#pragma once
// 90 % intervals of simulated metrics.

#include <string>
#include <vector>

#include "sim/plan/scenario.h"
#include "sim/plan/system_spread.h"

namespace roofcast {

struct MetricInterval {
  std::string metric;  ///< a name of metrics_of: "mean_ttft_ms"
  double low = 0, high = 0;
};

/// Repeats the simulation with constants drawn from the uncertainty of their fits. A draw is one lognormal factor per
/// operator family, as wide as the residual of the family, and one for everything else (25 %), as in relative_spread;
/// it holds for the whole run. Decode and prefill steps err by the weights of the families in them at the load in
/// `metrics`, so their errors are correlated as far as they share families; a mixed step is its decodes plus what the
/// prompts add. The 5th and 95th percentiles of the draws are combined with the errors of whole deployments
/// (system_spread) as an independent cause. Covers latencies and throughputs, from 40 stratified draws (fewer above
/// 100,000 requests). Empty above 500,000 requests, which would take minutes, and for the ideal roofline.
std::vector<MetricInterval> serving_intervals(const Scenario& scenario, const ServingMetrics& metrics);

/// The same for one metric ("ttft_p99", "tpot_mean") without another simulation: the kernel spread in the steps that
/// make up the metric, and the errors of whole deployments. For the many candidates of a plan.
LogSpread quick_spread(const Scenario& scenario, const ServingMetrics& metrics, const std::string& metric);

}  // namespace roofcast
