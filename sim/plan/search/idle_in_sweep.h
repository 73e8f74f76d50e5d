#pragma once
// Settings that have no effect in a sweep.

#include <string>
#include <vector>

#include "sim/plan/search/sweep_run.h"

namespace roofcast {

/// The axes that change nothing: keys of the grid, "a and b" for keys that change together, over whose values all
/// points have the same results. Points that do not fit tell nothing.
std::vector<std::string> idle_axes(const SweepSpec& sweep, const SweepOutcome& outcome, const SweepStore& store);

/// Lines of idle_settings() that are true of every point, but for those of keys that vary. None for more than 500
/// points.
std::vector<std::string> idle_everywhere(const SweepSpec& sweep, Fidelity fidelity, const SweepOutcome& outcome);

}  // namespace roofcast
