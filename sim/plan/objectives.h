#pragma once
// Objectives of a service: limits on statistics of TTFT, TPOT, ITL and E2E latency.

#include <string>
#include <string_view>
#include <vector>

#include "base/config_reader.h"
#include "sim/serve/metrics.h"
#include "sim/serve/workload.h"

namespace roofcast {

enum class LatencyMetric { kTtft, kTpot, kItl, kE2el };
std::string_view name_of(LatencyMetric metric);  ///< ttft, tpot, itl, e2el

/// `ttft_p99: 2 s`, `tpot_mean: 50 ms`; a bare `ttft: 2 s` is its p99.
struct Objective {
  LatencyMetric metric = LatencyMetric::kTtft;
  double percentile = 99;  ///< negative: the mean
  Seconds limit{};
  int client = -1;                ///< index of the kind of client that it applies to; -1: all
  std::string who = {};           ///< name of that kind
  std::string statistic() const;  ///< as in its key
  std::string name() const;       ///< with the kind of client, if any: "chat ttft_p99"
};

std::vector<Objective> parse_objectives(ConfigReader in);
/// Objectives of the individual kinds of clients.
std::vector<Objective> objectives_of_clients(const WorkloadSpec& workload);
/// Throws ConfigError for ITL objectives of a kind of client: gaps are not recorded by kind, so a plan cannot judge
/// them. (In a simulation such a limit applies to TPOT of single requests.)
void refuse_gaps_of_clients(const WorkloadSpec& workload);

/// The samples of the metric that the objective limits.
const Distribution& distribution_of(const Objective& objective, const ServingMetrics& metrics);
std::int64_t requests_of(const Objective& objective, const ServingMetrics& metrics);
/// The statistic that the objective limits.
Seconds observed(const Objective& objective, const ServingMetrics& metrics);

/// Whether enough requests completed: at least one and none failed. With a goodput, its miss rate may fail.
bool serves_enough(const ServingMetrics& metrics, double goodput = 0);

/// Whether a run met the objective: its statistic is within the limit, no request failed, and the queue does not grow.
bool meets(const Objective& objective, const ServingMetrics& metrics);

/// Limits of single requests for goodput: those of all objectives, whatever their percentile; or of one kind of client.
Objectives goodput_limits(const std::vector<Objective>& objectives, int client = -1);
/// The same per kind of client: its own limits if it has any, else those of all requests. Empty if no kind has its own.
std::vector<Objectives> client_limits(const std::vector<Objective>& objectives, std::size_t clients);

}  // namespace roofcast
