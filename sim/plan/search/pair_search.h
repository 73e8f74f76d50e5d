#pragma once
// How many prefill and decode workers of one pair of layouts carry the load.

#include "sim/plan/search/fleet_size.h"

namespace roofcast {

/// What no fleet of the pair can beat.
struct PairBounds {
  LoadBounds prefill, decode;
  Seconds transfer{};  ///< of a cache, where all prompts are of one length: part of every TTFT
  Seconds wait{};      ///< that a mean TTFT leaves for queueing
  bool queue = false;  ///< Poisson arrivals of prompts of one length, with a limit on their mean TTFT: `wait` holds

  double decode_stay = 0;  ///< seconds that a request decodes at the least
  double seen = 0;         ///< steps that pass, in the mean, before a decode worker at work takes a cache

  /// Rate matching: the smaller of the two roles. Where there is a queue, the rate stays below that at which the mean
  /// wait of M/D/c for prefill (sim/plan/search/waiting.h), and for the next step of a decode worker that is not idle
  /// (more than the share 1 - exp(-n) of the time with n requests in the mean), exceed `wait` together.
  double requests_per_s(const Fleet& fleet) const;
  LoadBounds latencies() const { return {.ttft = prefill.ttft + transfer, .tpot = decode.tpot}; }
};
PairBounds pair_bounds(const Candidate& pair, PricerPool& pricers);

/// The best score that any fleet of the pair could have, and what is expected of the best by a queueing formula;
/// infinite when there is no fleet.
struct PairScores {
  double bound = 0, expected = 0;
};
PairScores best_scores(const Candidate& pair, const PlanSpec& plan, const PairBounds& bounds);

/// `best`: the best score known, of which others are worth knowing up to `worth` times; infinite where there is none.
/// Where the load is given: the fewest decode workers beside ample prefill, the fewest prefill workers beside ample
/// decode, and from there fleets by their price until one holds. Otherwise fleets by what a queueing formula expects of
/// them; each whose bound may beat the best so far is simulated at the load with which it would, and turned up if it
/// holds. More workers and less load are taken never to hurt. `prune` false: every fleet is simulated.
struct PairSearch {
  double best = 0, worth = 1;
  bool prune = true;
};
Evaluation evaluate_pair(const Candidate& pair, const PlanSpec& plan, const PairBounds& bounds,
                         const PairSearch& search, PricerPool& pricers);

}  // namespace roofcast
