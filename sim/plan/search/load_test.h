#pragma once
// One deployment under one load: do its objectives hold?

#include "sim/plan/scenario.h"
#include "sim/plan/search/confidence.h"
#include "sim/plan/search/pricer_pool.h"

namespace roofcast {

/// What a search may turn up and down.
enum class LoadKind {
  kRate,   ///< requests a second of an open process
  kUsers,  ///< requests in flight of a closed loop
  kPace,   ///< of a trace or a mix of clients, as a multiple of its own rate
  kWhole,  ///< everything at once
};
LoadKind load_kind(const WorkloadSpec& workload);
double offered_load(const WorkloadSpec& workload);  ///< requests/s, users, or 1

/// Makes the requests of a rate, a trace or a mix of clients come `pace` times as fast. A trace is cut on its scaled
/// clock: the cut moves with the pace, so that the same requests are played at every pace.
void quicken(WorkloadSpec& workload, double pace);

/// The requests of a workload that ends by itself, and when the last of them comes.
struct Extent {
  std::int64_t requests = 0;
  Seconds last{};
};
Extent extent_of(const WorkloadSpec& workload, std::uint64_t seed);

struct Verdict {
  Objective objective;
  Seconds value{}, upper{};  ///< the statistic, and the upper end of its interval
  bool met = false;
  double margin() const { return 1.0 - upper / objective.limit; }
};

/// A run against the objectives.
struct Judgement {
  std::vector<Verdict> verdicts;
  double goodput = 0;      ///< share of all requests that were within all limits
  double goodput_low = 0;  ///< lower end of its 95 % confidence interval
  bool within = true;      ///< every verdict and nothing failed; or where a goodput is asked for, that
  double worst_ratio = 0;  ///< of upper end and limit, the most of all objectives; or of the shares that miss
};
Judgement judge(const Scenario& scenario, const ServingMetrics& metrics);

struct LoadResult : Judgement {
  ServingMetrics metrics;
  bool stationary = true;  ///< the queue does not grow
  bool met = false;        ///< within and stationary
  std::int64_t requests = 0;
  bool cut = false;  ///< ended when an objective could not be met any more; then not met

  /// Whether the run itself met every objective, without room for the luck of its requests.
  bool held(const Scenario& scenario) const;
};

/// Replicas in a simulation.
struct Fleet {
  int replicas = 1;
  int prefill_replicas = 0;  ///< of a disaggregated scenario; 0: as it says
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

/// Simulates with as many requests as the objectives' percentiles need and as it takes to fill the machine some times
/// over; the first that fill it are not counted. Ends early when the requests so far make a mean or a percentile miss
/// its limit whatever the others do.
LoadResult test_load(const Scenario& scenario, const LoadTest& test, PricerPool& pricers);

}  // namespace roofcast
