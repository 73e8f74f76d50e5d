#pragma once
// What a plan may choose from, and its goal.

#include <limits>
#include <optional>

#include "sim/model/precision.h"
#include "sim/plan/prices.h"
#include "sim/plan/scenario.h"
#include "sim/plan/search/load_test.h"
#include "sim/plan/search/sweep.h"

namespace roofcast {

struct Sharding;

enum class PlanGoal {
  kCost,        ///< the offered load at the fewest USD/h
  kGpus,        ///< ... on the fewest GPUs
  kThroughput,  ///< the most output tokens/s per GPU within the objectives, at any load
};
std::string_view name_of(PlanGoal goal);

/// The points of the search space for workers of one role, and the allowed numbers of workers; empty: any.
struct RoleSpace {
  std::vector<std::string> gpus;
  std::vector<int> tp, pp, ep, attention_dp, max_num_seqs, max_num_batched_tokens, workers;
  bool allows(const Deployment& deployment) const;
  bool allows_count(int count) const;
};

/// A load that grows by a fixed fraction every month, and the lead time for ordering GPUs.
struct GrowthSpec {
  double per_month = 0;  ///< fraction: 0.05
  int months = 24, lead_months = 0;
};

/// Zones whose replicas fail together: zones of a provider, or pools of spot instances. Replicas are spread evenly over
/// the zones.
struct ZoneSpec {
  int count = 1;
  Seconds mtbf{};    ///< mean time between interruptions of one zone
  Seconds repair{};  ///< time until its replicas can restart
};

struct PlanSpec {
  SweepSpec space;                                ///< every point is a candidate
  bool aggregated = true, disaggregated = false;  ///< modes
  RoleSpace prefill, decode;                      ///< of disaggregated candidates
  BytesPerSecond transfer_bandwidth{};            ///< of KV caches, per GPU; 0: that of its NIC
  std::optional<Seconds> transfer_latency;        ///< empty: the decode engine's handover_time
  PlanGoal goal = PlanGoal::kCost;
  int max_gpus = 8;                                    ///< of the fleet
  std::vector<std::pair<std::string, int>> available;  ///< available GPUs per type, where limited
  Precision only{};                                    ///< required formats, where `only_set` says so
  bool only_weights = false, only_activations = false, only_kv_cache = false;
  int spare_replicas = 0;         ///< spares in addition to the N needed replicas
  UsdPerHour max_cost{};          ///< of the fleet, including spares; 0: no limit
  Watts max_power{};              ///< mean power of all GPUs at the load; 0: no limit
  double confidence = 0.9;        ///< probability that all objectives are met; 0: not judged
  double load_uncertainty = 0;    ///< relative standard deviation of the offered load
  double goodput = 0;             ///< required fraction of requests within all limits; 0: each limit separately
  double availability = 0;        ///< fraction of the time in which all needed replicas are up; 0: use spare_replicas
  std::optional<ZoneSpec> zones;  ///< for `availability`; empty: replicas fail independently
  std::optional<GrowthSpec> growth;      ///< of the load; empty: constant
  Seconds slice{};                       ///< slice of a trace's day; 0: chosen by its length
  double grams_co2_per_kwh = 0;          ///< carbon intensity of the grid; 0: carbon is not reported
  double power_usage_effectiveness = 1;  ///< power of the facility relative to the GPUs, for carbon
};

/// A scenario and
///   search:
///     gpus: [h100-sxm, {name: h200-sxm, available: 16, price: 3.5 USD/h}]   required
///     max_gpus: 8
///     tp, pp, dcp, ep, attention_dp: [counts]   default tp 1 2 4 8 ... up to max_gpus, the others 1
///     expert_overlap: [none, two_batch]         of what the engine's release has
///     precision: [names or maps]                weights, kv_cache: [formats]
///     engines, max_num_seqs, max_num_batched_tokens: [...]
///     speculation: [none, {method: eagle3, acceptance: 0.7, num_speculative_tokens: [1, 3, 5]}]
///     modes: [aggregated, disaggregated]        default aggregated
///     prefill, decode: {gpus, tp, pp, ep, attention_dp, max_num_seqs, max_num_batched_tokens, workers: [...]}
///                                               of disaggregated candidates: the choices for each role
///     transfer: {bandwidth: 50 GB/s, latency: 1 ms}        of caches; default each GPU's NIC, handover_time
///     goal: cost | gpus | throughput            default cost where a rate or users are given
///     max_cost: 50 USD/h    max_power: 20 kW    (limits of the fleet; none by default)
///     goodput: 0.95                             fraction of requests within all limits, instead of percentiles
///     slice: 1 h                                of the day of a trace: replicas per slice
///     confidence: 0.9                           probability that all objectives are met; 0: not judged
///     load_uncertainty: 0.1                     relative standard deviation of the load; 0 by default
///     availability: 0.999                       of all needed replicas, instead of spare_replicas; needs the
///                                               scenario's failures: {mtbf, repair}
///     zones: {count: 3, mtbf: 500 h, repair: 1 h}                each is interrupted as a whole
///     owned: {gpus: [{name: a100-sxm, available: 8}], tp, precision ...}   owned GPUs (sim/plan/search/owned.h)
///     growth: {per_month: 0.05, months: 24, lead_months: 3}      the fleet month by month
///     spare_replicas: 0    carbon_intensity: 0 (g CO2/kWh)    power_usage_effectiveness: 1
PlanSpec parse_plan(const ConfigTree& tree);

/// The plan with `key` of the scenario fixed to `value` by a flag. The search axis of that key keeps only this value;
/// for a format, which several axes may set, a condition is added. A key that the search does not vary is set in the
/// scenario. Throws ConfigError for keys that the search itself determines.
ConfigTree with_constraint(const ConfigTree& plan, const std::string& key, const ConfigTree& value,
                           const std::string& origin);

/// One point of the search space as a scenario. Disaggregated candidates combine two points: the scenario's deployment
/// decodes, the other prefills.
struct Candidate {
  std::uint64_t index = 0, point = 0;  ///< distinguishes candidates; index in the space
  Scenario scenario;
  std::string gpu, precision;
  int most_gpus = 0;          ///< limit for the fleet
  int most_of_kind = 0;       ///< limit for its type of GPU
  int most_prefill_gpus = 0;  ///< limit for the prefill workers' type of GPU
  double up = 1;              ///< fraction of the time in which a replica is up, for `availability`
  double zone_up = 1;         ///< the same for its zone
  double most_usd_per_hour = std::numeric_limits<double>::infinity();  ///< limit for the fleet

  bool disaggregated() const { return scenario.serving.disaggregation.has_value(); }
  const Deployment& prefill() const { return *scenario.serving.disaggregation->prefill; }
  int gpus() const, prefill_gpus() const;  ///< of one replica or decode worker; of one prefill worker
  int gpus(const Fleet& fleet) const { return gpus() * fleet.replicas + prefill_gpus() * fleet.prefill_replicas; }
  Bill bill(const Fleet& fleet) const;  ///< per hour
  Bill bill(std::span<const FleetSpan> spans) const;
  double usd_per_hour(const Fleet& fleet) const { return bill(fleet).usd_per_hour(); }
  /// Whether the limits on GPUs and cost allow the fleet plus `spare` more replicas per role.
  bool affords(const Fleet& fleet, int spare) const;
  int most_replicas(int spare) const, most_prefill_workers(int spare) const;
};

/// "tp 2 pp 2 dcp 2 adp 4 ep 8", without sizes of 1.
std::string layout_of(const Sharding& sharding);

struct Candidates {
  std::vector<Candidate> kept;  ///< aggregated candidates, then pairs
  std::uint64_t considered = 0, pairs = 0, too_large = 0, unsupported = 0, unpriced = 0;
  /// Points with a wrong value; an impossible split; too many GPUs.
  std::uint64_t mistaken = 0, unsplittable = 0, beyond_gpus = 0;
  std::uint64_t unpowered = 0, too_dear = 0;  ///< unknown power with a limit; one replica and spares exceed `max_cost`
  std::uint64_t below_availability = 0;       ///< no number of replicas in their zones reaches `availability`
  std::string cost_reason;                    ///< the cost of the cheapest of the too expensive ones
  LoadKind kind = LoadKind::kRate;
  std::string first_reason;        ///< why the first one did not fit in memory
  std::vector<std::string> notes;  ///< what cannot run and what has no price, each once
};
/// Reads every point. Drops points that cannot be split, need too many GPUs, or cannot hold a request of mean length.
/// Pairs combine every prefill worker with every decode worker of the same engine and formats. Prefill workers vary in
/// everything but max_num_seqs, decode workers in everything but max_num_batched_tokens (the largest is used).
/// Objectives are those of the scenario, else of the workload. Throws ConfigError if no point can be read.
Candidates read_candidates(const PlanSpec& plan, Fidelity fidelity);

}  // namespace roofcast
