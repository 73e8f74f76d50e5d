#pragma once
// Several answers to a prompt (`samples`), and what they are not simulated beside.

#include "sim/plan/scenario.h"

namespace roofcast {

/// Throws ConfigError where the scenario is one that they are not simulated in, such as a disaggregated one.
void check_samples(const Scenario& scenario, const WorkloadSpec& workload);

}  // namespace roofcast
