#pragma once
// Tests one deployment under one load: do its objectives hold?

#include "sim/plan/scenario.h"
#include "sim/plan/search/confidence.h"
#include "sim/plan/search/pricer_pool.h"

namespace roofcast {

/// The part of a load that a search can scale.
enum class LoadKind {
  kRate,   ///< requests per second of an open process
  kUsers,  ///< requests in flight of a closed loop
  kPace,   ///< speed of a trace or a mix of clients, as a multiple of its own
  kWhole,  ///< a batch: everything at once
};
LoadKind load_kind(const WorkloadSpec& workload);
double offered_load(const WorkloadSpec& workload);  ///< requests/s, users, or 1

/// Makes the requests of a rate, a trace or a mix of clients come `pace` times as fast. A trace is cut on its scaled
/// clock, so that the same requests are played at every pace.
void quicken(WorkloadSpec& workload, double pace);

/// Number of requests in a workload that ends by itself, also by kind of clients, and the time of the last one.
struct Extent {
  std::int64_t requests = 0;
  std::vector<std::int64_t> by_client = {};
  Seconds last{};
};
Extent extent_of(const WorkloadSpec& workload, std::uint64_t seed);

struct Verdict {
  Objective objective;
  Seconds value{}, upper{};  ///< the statistic, and the upper end of its interval
  bool met = false;
  double margin() const { return 1.0 - upper / objective.limit; }
};

/// A run judged by the objectives.
struct Judgement {
  std::vector<Verdict> verdicts;
  double goodput = 0;      ///< share of all requests within all limits
  double goodput_low = 0;  ///< lower end of its 95 % confidence interval
  bool within = true;      ///< every verdict holds and nothing failed; under a goodput, the goodput holds
  double worst_ratio =
      0;  ///< largest ratio of upper end to limit over all objectives; under a goodput, ratio of the shares that miss
};
Judgement judge(const Scenario& scenario, const ServingMetrics& metrics);

struct LoadResult : Judgement {
  ServingMetrics metrics;
  bool stationary = true;  ///< the queue does not grow
  bool met = false;        ///< within and stationary
  std::int64_t requests = 0;
  bool cut = false;  ///< stopped early because an objective could no longer be met; then not met

  /// Whether the run itself met every objective, with no margin for the luck of its requests.
  bool held(const Scenario& scenario) const;
};

/// Replicas in a simulation.
struct Fleet {
  int replicas = 1;
  int prefill_replicas = 0;  ///< of a disaggregated scenario; 0: the scenario's own
};

struct LoadTest {
  double load = 1;  ///< of the whole fleet, in the unit of its kind
  Fleet fleet{};
  std::uint64_t seed = 0;
  double more_requests = 1;   ///< times what the percentile needs
  bool to_the_end = false;    ///< even when an objective cannot be met any more
  bool only_met = false;      ///< no more is wanted: ends when it cannot be `met`, even where it may hold
  PricerFactory pricer = {};  ///< of the steps, in place of the pool's
};

/// Simulates enough requests for the objectives' percentiles and to fill the machine several times; the first ones,
/// which fill it, do not count. Stops early when the requests so far make a mean or percentile miss its limit whatever
/// the rest do.
LoadResult test_load(const Scenario& scenario, const LoadTest& test, PricerPool& pricers);

}  // namespace roofcast
