#pragma once
// Bounds that no schedule can beat, from the prices of single steps. They prune a search without losing its winner.

#include "sim/plan/search/plan_spec.h"
#include "sim/serve/step_pricer.h"

namespace roofcast {

struct LoadBounds {
  double requests_per_s = 0;  ///< most that one replica can serve
  Seconds ttft{}, tpot{};     ///< least that any request can see
};

/// One replica, which runs one step at a time.
///   A step with b decodes costs at least as much as b decodes alone, and one with c prompt tokens at least as much as
///   these alone (calibrated prices grow with the content of a step). So n requests of p prompt and o output tokens
///   need
///     time >= n (o - 1) min_b step(b, 0)/b    and    time >= n p min_c step(0, c)/c
///   with the shortest context, over every batch up to the engine's limit. Hence requests/s <= 1 / the larger of the
///   two. TPOT >= the step of one sequence. TTFT >= the front end and one token of prefill (the whole prompt if all
///   have one length and nothing is shared).
/// All bounds are loosened by a tenth, because steps on a GPU's tile grid do not grow quite evenly. With speculation a
/// step makes the mean number of accepted tokens (for the TPOT: all k + 1), and drafting is left out. The bounds do not
/// hold for sessions and traces: then nothing is bounded.
LoadBounds load_bounds(const Scenario& scenario, StepPricer& pricer);

/// By how much the bounds of prefill and of decode workers are loosened.
inline constexpr double kPrefillSlack = 0.96, kDecodeSlack = 0.98;

/// One verifying step of one sequence, with every draft accepted.
Seconds least_tpot(const SpeculationSpec& speculation, int context, StepPricer& pricer);

/// One prefill worker, whose steps hold only prompts: the second sum above, and TTFT without the transfer. Unshared
/// prompts of one length also pay for the attention over all of their tokens. Loosened by a twenty-fifth.
LoadBounds prefill_bounds(const Scenario& scenario, const Deployment& worker, StepPricer& pricer);

/// One decode worker, whose steps hold only decodes. A step of b decodes takes at least t(b), with every context as
/// short as the shortest prompt; b is limited by the engine and by the memory at that context. Each of its tokens pays
/// t(b)/b. With w(b) the share of the tokens made in steps of b,
///     seconds per token = sum w t/b    and, if every request has o outputs,    mean TPOT = sum w t
///   A mean TPOT of at most T therefore bounds the first from below by the lower convex hull of the points
///   (t(b), t(b)/b) at T. Under a percentile q only the share q of the tokens must keep T; the others cost min t/b.
/// Loosened by a fiftieth, because not every b is tried. With speculation t(b) is divided by the mean tokens per step,
/// and percentiles are not used, because they then also depend on luck.
/// percentiles, which are then a matter of luck too, are not used.
LoadBounds decode_bounds(const Scenario& scenario, StepPricer& pricer);

/// False when an objective is below what any request must see.
bool may_hold(const LoadBounds& bounds, const std::vector<Objective>& objectives);

}  // namespace roofcast
