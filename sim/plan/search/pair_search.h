#pragma once
// How many prefill and decode workers of one pair of layouts are needed for the load.

#include "sim/plan/search/fleet_size.h"

namespace roofcast {

/// Bounds that no fleet of the pair can beat.
struct PairBounds {
  LoadBounds prefill, decode;
  Seconds transfer{};  ///< cache transfer if all prompts have the same length: part of every TTFT
  Seconds wait{};      ///< queueing time allowed by a mean TTFT
  bool queue = false;  ///< `wait` applies: Poisson arrivals, equal prompts, limit on mean TTFT

  double decode_stay = 0;  ///< minimum decode time of a request, s
  double seen = 0;         ///< mean steps before a busy decode worker accepts a cache

  /// Rate matching: the smaller rate of the two roles. With `queue`, the rate is also limited so that the mean wait for
  /// prefill (M/D/c, sim/plan/search/waiting.h) plus the wait for the next step of a busy decode worker (busy for at
  /// least 1 - exp(-n) of the time with n requests on average) does not exceed `wait`.
  double requests_per_s(const Fleet& fleet) const;
  LoadBounds latencies() const { return {.ttft = prefill.ttft + transfer, .tpot = decode.tpot}; }
};
PairBounds pair_bounds(const Candidate& pair, PricerPool& pricers);

/// The best possible score of any fleet of the pair, and the score that a queueing formula expects of the best;
/// infinite if there is no fleet.
struct PairScores {
  double bound = 0, expected = 0;
};
PairScores best_scores(const Candidate& pair, const PlanSpec& plan, const PairBounds& bounds);

/// `best`: the best known score; others are of interest up to `worth` times it. Infinite if there is none. With a given
/// load: finds the fewest decode workers with ample prefill, the fewest prefill workers with ample decode, and from
/// there tries fleets by price until one holds. Otherwise: tries fleets in the order that a queueing formula expects. A
/// fleet whose bound may beat the best is simulated at the load that would, and the load is raised if it holds. Assumes
/// that more workers and less load never hurt. `prune` false: simulates every fleet.
struct PairSearch {
  double best = 0, worth = 1;
  bool prune = true;
};
Evaluation evaluate_pair(const Candidate& pair, const PlanSpec& plan, const PairBounds& bounds,
                         const PairSearch& search, PricerPool& pricers);

}  // namespace roofcast
