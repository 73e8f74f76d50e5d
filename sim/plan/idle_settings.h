#pragma once
// Settings of a scenario that have no effect.

#include <string>
#include <string_view>
#include <vector>

#include "sim/plan/scenario.h"

namespace roofcast {

/// One line per setting, with the reason. Only settings written in the scenario itself are checked, not those from a
/// release, a recipe or a named workload.
std::vector<std::string> idle_settings(const ConfigTree& scenario, const Scenario& read);

/// Whether a scenario has this key, "engine.host.rank_skew".
bool writes(const ConfigTree& scenario, std::string_view dotted_key);

}  // namespace roofcast
