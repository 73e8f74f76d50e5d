#pragma once
// What no schedule can beat, from the price of single steps: prunes a search without losing its winner.

#include "sim/plan/search/plan_spec.h"
#include "sim/serve/step_pricer.h"

namespace roofcast {

struct LoadBounds {
  double requests_per_s = 0;  ///< a replica serves at most
  Seconds ttft{}, tpot{};     ///< no request sees less
};

/// One replica, of which at any time one step runs.
///   A step with b decodes costs at least what b decodes alone cost, and one with c prompt tokens at least what they
///   cost alone (the calibrated prices grow with what is in a step). So n requests of p prompt and o output tokens need
///     time >= n (o - 1) min_b step(b, 0)/b    and    time >= n p min_c step(0, c)/c
///   with the shortest context, every batch up to the engine's limit. Hence requests/s <= 1 / the larger of the two.
///   TPOT >= the step of one sequence, TTFT >= the front end and one token of prefill (the whole prompt where all are
///   of one length and nothing is shared).
/// All bounds are loosened by a tenth, for steps on a GPU's tile grid do not grow quite evenly. With speculation
/// a step makes as many tokens as are accepted in the mean (for the TPOT: all k + 1), and drafting is left out. With
/// sessions or a trace the bounds do not hold: then nothing is bounded.
LoadBounds load_bounds(const Scenario& scenario, StepPricer& pricer);

/// By which the bounds of prefill and of decode workers are loosened.
inline constexpr double kPrefillSlack = 0.96, kDecodeSlack = 0.98;

/// One verifying step of one sequence, every draft accepted.
Seconds least_tpot(const SpeculationSpec& speculation, int context, StepPricer& pricer);

/// One prefill worker, whose steps hold nothing but prompts: the second sum above, and TTFT without the transfer.
/// Prompts of one length, unshared, bring the attention over all of their tokens besides. Loosened by a twenty-fifth.
LoadBounds prefill_bounds(const Scenario& scenario, const Deployment& worker, StepPricer& pricer);

/// One decode worker, whose steps hold nothing but decodes. A step of b of them takes at least t(b), every context as
/// short as the shortest prompt, and b is limited by the engine and by the memory at that context. Of its tokens each
/// pays t(b)/b, so with w(b) the share of the tokens made in steps of b
///     seconds a token = sum w t/b    and, where every request has o outputs,    mean TPOT = sum w t
///   A mean TPOT of at most T therefore bounds the first from below by the lower convex hull of the points
///   (t(b), t(b)/b) at T. Of a percentile q only the share q of the tokens is held to T; the others cost min t/b.
/// Loosened by a fiftieth, for not every b is tried. With speculation t(b) is divided by the mean tokens of a step, and
/// percentiles, which are then a matter of luck too, are not used.
LoadBounds decode_bounds(const Scenario& scenario, StepPricer& pricer);

/// False when an objective is below what any request must see.
bool may_hold(const LoadBounds& bounds, const std::vector<Objective>& objectives);

}  // namespace roofcast
