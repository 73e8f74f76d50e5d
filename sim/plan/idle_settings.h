#pragma once
// Settings that a scenario writes and that change nothing in it.

#include <string>
#include <vector>

#include "sim/plan/scenario.h"

namespace roofcast {

/// One line each: the setting, and why it changes nothing here. Only what the scenario itself writes is judged, not
/// what a release, a recipe or a workload by name says.
std::vector<std::string> idle_settings(const ConfigTree& scenario, const Scenario& read);

}  // namespace roofcast
