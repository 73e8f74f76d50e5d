#pragma once
// Checks that a scenario with several answers per prompt (`samples`) can be simulated.

#include "sim/plan/scenario.h"

namespace roofcast {

/// Throws ConfigError if the scenario has a feature that does not combine with `samples`, such as disaggregation.
void check_samples(const Scenario& scenario, const WorkloadSpec& workload);

}  // namespace roofcast
