#pragma once
// A fleet for a load that changes over the day: the planned deployment, its replicas hour by hour, and its cost
// compared with a fleet of constant size.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/search/capacity_search.h"

namespace roofcast {

struct FleetSlice {
  Seconds from{}, to{};
  double rate = 0;                              ///< offered rate
  double prompt_tokens = 0, output_tokens = 0;  ///< means, for traces
  int needed = 0;                               ///< replicas needed for this rate; 0 without load
  double mean = 0;                              ///< mean number of paid replicas of the autoscaled fleet
  int most = 0;                                 ///< maximum number of serving replicas
  std::map<int, double> hours = {};             ///< hours by number of paid replicas
  double usd = 0;                               ///< cost of the autoscaled fleet and its spares, in whole instances
  std::int64_t completed = 0;                   ///< completed requests of those that arrived in this slice
  Distribution ttft_ms;
};

/// A plan whose workload changes over time.
struct DiurnalPlan {
  ConfigTree peak;                 ///< the plan at its peak rate, for search_capacity(); null for a trace
  WorkloadSpec day;                ///< one period of the profile, or the duration of the workload
  bool recorded = false;           ///< a trace or a mix of clients: slices are replayed, and the day does not repeat
  bool of_busiest = false;         ///< deployments are searched for the busiest slice of a long trace
  double mean = 0;                 ///< requests/s
  double highest = 0;              ///< requests/s of the busiest slice
  Seconds length{};                ///< length of the day
  std::vector<FleetSlice> slices;  ///< with their offered load
};
/// Empty if the workload's arrivals have no `profile`.
std::optional<DiurnalPlan> diurnal_plan(const ConfigTree& plan);

/// The day of a trace, or of a mix of clients with a duration. Slices have length `search.slice`, by default one hour,
/// or less if the load spans less than six hours. Empty for other loads, for a single slice, for disaggregated
/// searches, and for the throughput goal. Throws ConfigError for too many slices.
std::optional<DiurnalPlan> recorded_day(const PlanSpec& plan);

/// The load for which deployments are searched: for a long trace, the slice with the most tokens per second.
PlanSpec sought_plan(const PlanSpec& plan, const DiurnalPlan& day);

/// One way to run the fleet over the day, with the spare replicas all day. Instances are paid for whole, at the offer
/// that is cheapest for the day.
struct FleetDay {
  double replica_hours = 0, usd = 0;
  std::string price = {};  ///< GPU price in words
};

struct FleetPlan {
  std::uint64_t candidate = 0;  ///< index of the planned deployment
  std::string deployment;       ///< the deployment in words
  int gpus_a_replica = 1;
  Seconds cold_start{}, length{};  ///< length of the day
  bool recorded = false;           ///< the day comes from a trace
  bool of_busiest = false;         ///< deployments were searched for its busiest slice
  double confidence = 0;           ///< probability per slice and for the autoscaled day; 0: forecast only
  int static_replicas = 0;         ///< without spares
  std::vector<FleetSlice> slices;
  FleetDay fixed;      ///< constant number of replicas, for the busiest slice or the whole trace
  FleetDay scheduled;  ///< `needed` replicas by schedule, started one cold start ahead
  FleetDay scaled;     ///< autoscaled
  AutoscalingSpec scaling;
  ServingMetrics metrics;         ///< of the autoscaled day
  std::vector<Verdict> verdicts;  ///< for the autoscaled day, over all requests
  double goodput = 0, worst_ratio = 0;
  bool met = false;

  /// The cheapest of the fixed, the scheduled and (if it meets the objectives) the autoscaled day.
  double cheapest_usd() const;
};

/// For the best few rows of the ranking: finds the replicas per slice, simulated at the slice's rate or with the
/// slice's own requests (those of the previous minutes warm up the caches). Then simulates the whole day with the
/// autoscaler, lowering its target until the objectives hold. Returns the cheapest day that meets them, else the
/// nearest. If the plan has its own `autoscaling:` settings, they are used unchanged. The row of that day is set to the
/// replicas of its busiest slice and judged in all draws, so that ranking and day have the same fleet.
FleetPlan plan_fleet(const PlanSpec& asked, const DiurnalPlan& plan, PlanResult& result);

}  // namespace roofcast
