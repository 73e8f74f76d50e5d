#pragma once
// What a service promises: limits on statistics of TTFT, TPOT, ITL and E2E latency.

#include <string>
#include <string_view>
#include <vector>

#include "base/config_reader.h"
#include "sim/serve/metrics.h"

namespace roofcast {

enum class LatencyMetric { kTtft, kTpot, kItl, kE2el };
std::string_view name_of(LatencyMetric metric);  ///< ttft, tpot, itl, e2el

/// `ttft_p99: 2 s`, `tpot_mean: 50 ms`; a bare `ttft: 2 s` is its p99.
struct Objective {
  LatencyMetric metric = LatencyMetric::kTtft;
  double percentile = 99;  ///< negative: the mean
  Seconds limit{};
  std::string name() const;  ///< as its key
};

std::vector<Objective> parse_objectives(ConfigReader in);

const Distribution& distribution_of(const ServingMetrics& metrics, LatencyMetric metric);
/// The statistic that the objective limits.
Seconds observed(const Objective& objective, const ServingMetrics& metrics);

/// Whether enough requests were served for objectives to be met: some, and none failed; where a goodput is asked for,
/// as many may fail as it leaves.
bool serves_enough(const ServingMetrics& metrics, double goodput = 0);

/// Whether a run met the objective: its statistic is within the limit, no request failed, and the queue does not grow.
bool meets(const Objective& objective, const ServingMetrics& metrics);

/// Limits of single requests for goodput: the objective's limit, whatever its percentile.
Objectives goodput_limits(const std::vector<Objective>& objectives);

}  // namespace roofcast
