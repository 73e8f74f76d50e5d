#pragma once
// Engine settings that a scenario writes and that change nothing in its deployment.

#include <string>
#include <vector>

#include "sim/plan/scenario.h"

namespace roofcast {

/// One line each: the setting, and why it changes nothing here. Only settings in the scenario's own `engine` map are
/// judged, not a release's or a recipe's.
std::vector<std::string> idle_settings(const ConfigTree& scenario, const Scenario& read);

}  // namespace roofcast
