#pragma once
// Bounds that no schedule can beat, from prices of single steps. They prune a search without losing its winner.

#include "sim/plan/search/plan_spec.h"
#include "sim/serve/step_pricer.h"

namespace roofcast {

struct LoadBounds {
  double requests_per_s = 0;  ///< upper bound for one replica
  Seconds ttft{}, tpot{};     ///< lower bounds for any request
};

/// One replica, which runs one step at a time.
///   A step with b decodes costs at least as much as b decodes alone, and one with c prompt tokens at least as much as
///   these alone (calibrated prices grow with the content of a step). So n requests of p prompt and o output tokens
///   need
///     time >= n (o - 1) min_b step(b, 0)/b    and    time >= n p min_c step(0, c)/c
///   with the shortest context, over every batch up to the engine's limit. Hence requests/s <= 1 / the larger of the
///   two. TPOT >= the step of one sequence. TTFT >= the front end plus the prefill of one token (of the whole prompt if
///   all have the same length and nothing is shared). have one length and nothing is shared).
/// All bounds are relaxed by a tenth, because steps on a GPU's tile grid are not quite monotonic. With speculation a
/// step yields the mean number of accepted tokens (for TPOT: all k + 1), and drafting is free. Sessions and traces are
/// not bounded.
LoadBounds load_bounds(const Scenario& scenario, StepPricer& pricer);

/// Factors by which the bounds of prefill and of decode workers are relaxed.
inline constexpr double kPrefillSlack = 0.96, kDecodeSlack = 0.98;

/// One verification step of one sequence, with every draft accepted.
Seconds least_tpot(const SpeculationSpec& speculation, int context, StepPricer& pricer);

/// One prefill worker, whose steps contain only prompts: the second sum above, and TTFT without the transfer. Unshared
/// prompts of equal length also pay for attention to all of their tokens. Relaxed by a twenty-fifth.
LoadBounds prefill_bounds(const Scenario& scenario, const Deployment& worker, StepPricer& pricer);

/// One decode worker, whose steps contain only decodes. A step of b decodes takes at least t(b), with every context as
/// short as the shortest prompt; the engine and the memory at that context limit b. Each token pays t(b)/b.
/// With w(b) the fraction of the tokens generated in steps of b,
///     seconds per token = sum w t/b    and, if every request has o outputs,    mean TPOT = sum w t
///   A mean TPOT of at most T therefore bounds the first from below by the lower convex hull of the points
///   (t(b), t(b)/b) at T. With a percentile q only the fraction q of the tokens must meet T; the others cost min t/b.
/// Relaxed by a fiftieth, because not every b is tried. With speculation t(b) is divided by the mean tokens per step,
/// and percentiles are ignored, because they also depend on chance.
LoadBounds decode_bounds(const Scenario& scenario, StepPricer& pricer);

/// False if an objective is below the lower bound of any request.
bool may_hold(const LoadBounds& bounds, const std::vector<Objective>& objectives);

}  // namespace roofcast
