#pragma once
// Tests whether a deployment meets its objectives at a given load.

#include "sim/plan/scenario.h"
#include "sim/plan/search/confidence.h"
#include "sim/plan/search/pricer_pool.h"

namespace roofcast {

/// The part of a load that a search can scale.
enum class LoadKind {
  kRate,   ///< requests per second of an open process
  kUsers,  ///< requests in flight of a closed loop
  kPace,   ///< speed of a trace or a mix of clients, relative to the original
  kWhole,  ///< a batch: everything at once
};
LoadKind load_kind(const WorkloadSpec& workload);
double offered_load(const WorkloadSpec& workload);  ///< requests/s, users, or 1

/// Speeds up a rate, a trace or a mix of clients by `pace`. The limits of a trace apply to the scaled time, so that the
/// same requests are replayed at every pace.
void speed_up(WorkloadSpec& workload, double pace);

/// The number of requests of a finite workload, also by kind of client, and the time of the last one.
struct Extent {
  std::int64_t requests = 0;
  std::vector<std::int64_t> by_client = {};
  Seconds last{};
};
Extent extent_of(const WorkloadSpec& workload, std::uint64_t seed);

struct Verdict {
  Objective objective;
  Seconds value{}, upper{};  ///< the statistic, and the upper end of its confidence interval
  bool met = false;
  double margin() const { return 1.0 - upper / objective.limit; }
};

/// A run judged against the objectives.
struct Judgement {
  std::vector<Verdict> verdicts;
  double goodput = 0;      ///< fraction of all requests within all limits
  double goodput_low = 0;  ///< lower end of its 95 % confidence interval
  bool within = true;      ///< every verdict holds and nothing failed; with a goodput, the goodput holds
  double worst_ratio =
      0;  ///< largest upper end / limit over all objectives; with a goodput, the ratio of the miss rates
};
Judgement judge(const Scenario& scenario, const ServingMetrics& metrics);

struct LoadResult : Judgement {
  ServingMetrics metrics;
  bool stationary = true;  ///< the queue does not grow
  bool met = false;        ///< within and stationary
  std::int64_t requests = 0;
  bool cut = false;  ///< stopped early because an objective could no longer be met

  /// Whether the run itself met every objective, without a margin for chance.
  bool held(const Scenario& scenario) const;
};

/// The number of replicas in a simulation.
struct Fleet {
  int replicas = 1;
  int prefill_replicas = 0;  ///< if disaggregated; 0: as in the scenario
};

struct LoadTest {
  double load = 1;  ///< of the whole fleet, in the unit of its LoadKind
  Fleet fleet{};
  std::uint64_t seed = 0;
  double more_requests = 1;   ///< factor on the number of requests
  bool to_the_end = false;    ///< never stop early
  bool only_met = false;      ///< only `met` matters: stops when it cannot be met, even if it may hold
  PricerFactory pricer = {};  ///< step prices; null: from the pool
};

/// Simulates enough requests for the percentiles of the objectives and to fill the deployment several times; the first
/// ones, which fill it, are not counted. Stops early once a mean or percentile must miss its limit whatever the
/// remaining requests do.
LoadResult test_load(const Scenario& scenario, const LoadTest& test, PricerPool& pricers);

}  // namespace roofcast
