#pragma once
// A fleet for a load that changes over the day: the planned deployment, its replicas hour by hour, what that costs
// against a fleet that is there all day.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/search/capacity_search.h"

namespace roofcast {

struct FleetSlice {
  Seconds from{}, to{};
  double rate = 0;                              ///< requests/s, offered
  double prompt_tokens = 0, output_tokens = 0;  ///< means, of a trace
  int needed = 0;                               ///< replicas that hold the rate all through it; 0 without load
  double mean = 0;                              ///< replicas paid for by the autoscaled fleet
  int most = 0;                                 ///< serving at once
  std::map<int, double> hours = {};              ///< by the number of replicas paid for at once
  double usd = 0;                               ///< of the autoscaled fleet and its spares, whole instances
  std::int64_t completed = 0;                   ///< of the requests that arrived in it
  Distribution ttft_ms;
};

/// A plan whose workload changes over time.
struct DiurnalPlan {
  ConfigTree peak;                 ///< the plan at its highest rate, for search_capacity(); null of a trace
  WorkloadSpec day;                ///< one period of the profile, or as long as the workload says
  bool recorded = false;           ///< a trace, or clients: each slice is played, and the day does not come again
  bool of_busiest = false;         ///< of a long trace: deployments are sought for its busiest slice, not the whole
  double mean = 0;                 ///< requests/s
  double highest = 0;              ///< requests/s of the busiest slice
  Seconds length{};                ///< of the day
  std::vector<FleetSlice> slices;  ///< with what is offered
};
/// Nothing where the workload's arrivals have no `profile`.
std::optional<DiurnalPlan> diurnal_plan(const ConfigTree& plan);

/// The day of a trace, or of a mix of clients that has a duration: slices of `search.slice`, else of an hour, or
/// shorter where it spans less than six of them. Nothing where the load is another, or a single slice, where prefill
/// and decode may be apart, or where the plan is for the most throughput. Throws ConfigError for too many slices.
std::optional<DiurnalPlan> recorded_day(const PlanSpec& plan);

/// What deployments are to be sought for: of a long trace the slice with the most tokens a second.
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
  bool recorded = false;           ///< it is a trace's
  bool of_busiest = false;         ///< ... and the deployments are those of its busiest slice
  double confidence = 0;           ///< with which each slice and the autoscaled day hold; 0: by the forecast alone
  int static_replicas = 0;         ///< without spares
  std::vector<FleetSlice> slices;
  FleetDay fixed;      ///< as many replicas as the busiest slice, or the whole trace, needs, all day
  FleetDay scheduled;  ///< `needed` by the clock, each started a cold start ahead
  FleetDay scaled;     ///< by the autoscaler
  AutoscalingSpec scaling;
  ServingMetrics metrics;         ///< of the autoscaled day
  std::vector<Verdict> verdicts;  ///< of it, over all its requests
  double goodput = 0, worst_ratio = 0;
  bool met = false;

  /// Of the fixed day, the day by the clock and, where it meets the objectives, the autoscaled one.
  double cheapest_usd() const;
};

/// For the best few of the ranking: replicas by slice (simulated at each slice's rate, or with the requests of the
/// slice, those of the minutes before it to warm up), then the whole day under the
/// autoscaler, its target turned down until the objectives hold. The one with the cheapest day of those that meet them,
/// else the one that comes nearest. The plan's own `autoscaling:` settings are used as they are.
FleetPlan plan_fleet(const PlanSpec& asked, const DiurnalPlan& plan, const PlanResult& result);

}  // namespace roofcast
