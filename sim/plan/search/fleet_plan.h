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
  double rate = 0;                              ///< offered
  double prompt_tokens = 0, output_tokens = 0;  ///< means; of a trace
  int needed = 0;                               ///< replicas that hold this rate; 0 without load
  double mean = 0;                              ///< replicas paid for by the autoscaled fleet
  int most = 0;                                 ///< serving at once
  std::map<int, double> hours = {};             ///< by the number of replicas paid for at once
  double usd = 0;                               ///< of the autoscaled fleet and its spares, whole instances
  std::int64_t completed = 0;                   ///< of the requests that arrived in it
  Distribution ttft_ms;
};

/// A plan whose workload changes over time.
struct DiurnalPlan {
  ConfigTree peak;                 ///< the plan at its highest rate, for search_capacity(); null for a trace
  WorkloadSpec day;                ///< one period of the profile, or the workload's own duration
  bool recorded = false;           ///< a trace or a mix of clients: each slice is played, and the day does not repeat
  bool of_busiest = false;         ///< deployments are sought for the busiest slice of a long trace, not for all of it
  double mean = 0;                 ///< requests/s
  double highest = 0;              ///< requests/s of the busiest slice
  Seconds length{};                ///< of the day
  std::vector<FleetSlice> slices;  ///< with the offered load
};
/// Empty where the workload's arrivals have no `profile`.
std::optional<DiurnalPlan> diurnal_plan(const ConfigTree& plan);

/// The day of a trace, or of a mix of clients with a duration. Slices are `search.slice` long, else an hour, or shorter
/// if the load spans less than six hours. Empty for other loads, for a single slice, where prefill and decode may be
/// separate, and where the goal is throughput. Throws ConfigError for too many slices.
std::optional<DiurnalPlan> recorded_day(const PlanSpec& plan);

/// The load that deployments are sought for: for a long trace, the slice with the most tokens per second.
PlanSpec sought_plan(const PlanSpec& plan, const DiurnalPlan& day);

/// One way to run the fleet for the day, with the spare replicas all day. Instances are paid for whole, at the offer
/// with the cheapest day.
struct FleetDay {
  double replica_hours = 0, usd = 0;
  std::string price = {};  ///< of the GPUs, in words
};

struct FleetPlan {
  std::uint64_t candidate = 0;  ///< index of the planned deployment
  std::string deployment;       ///< in words
  int gpus_a_replica = 1;
  Seconds cold_start{}, length{};  ///< length of the day
  bool recorded = false;           ///< the day is a trace's
  bool of_busiest = false;         ///< and the deployments are those of its busiest slice
  double confidence = 0;           ///< of each slice and of the autoscaled day; 0: forecast only
  int static_replicas = 0;         ///< without spares
  std::vector<FleetSlice> slices;
  FleetDay fixed;      ///< all day as many replicas as the busiest slice, or the whole trace, needs
  FleetDay scheduled;  ///< `needed` by the clock, each started one cold start ahead
  FleetDay scaled;     ///< by the autoscaler
  AutoscalingSpec scaling;
  ServingMetrics metrics;         ///< of the autoscaled day
  std::vector<Verdict> verdicts;  ///< of the autoscaled day, over all its requests
  double goodput = 0, worst_ratio = 0;
  bool met = false;

  /// The cheapest of the fixed day, the day by the clock and, where it meets the objectives, the autoscaled one.
  double cheapest_usd() const;
};

/// For the best few of the ranking: replicas by slice, simulated at the slice's rate or with the slice's own requests
/// (those of the minutes before it warm up the caches). Then the whole day under the autoscaler, whose target is
/// lowered until the objectives hold. Returns the cheapest day that meets them, else the nearest. The plan's own
/// `autoscaling:` settings are used unchanged. The row of that day gets the replicas that its busiest slice needs, and
/// is settled in all draws: the ranking and the day have one fleet.
FleetPlan plan_fleet(const PlanSpec& asked, const DiurnalPlan& plan, PlanResult& result);

}  // namespace roofcast
