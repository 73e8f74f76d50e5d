#pragma once
// Settings of a scenario that have no effect on an estimate.

#include <string>
#include <string_view>
#include <vector>

#include "sim/plan/estimate.h"
#include "sim/plan/scenario.h"
#include "sim/plan/spec_cache.h"

namespace roofcast::reports {

/// One line for each setting without which the answer is the same to the last digit: each is left out in turn, and the
/// request estimated again. Settings of which idle_settings() speaks are not named twice. Nothing is said of the engine
/// and the GPU where more than 40 of their settings are written. `specs`: those already read, if any.
std::vector<std::string> idle_in_estimate(const ConfigTree& scenario, const Scenario& read, Fidelity fidelity,
                                          const EstimateRequest& request, const Estimate& estimate,
                                          SpecCache* specs = nullptr);

/// Whether a key of a scenario has a meaning for the simulation alone.
bool only_simulated(std::string_view key);

}  // namespace roofcast::reports
