#pragma once
// Settings that a scenario writes and that change nothing in it.

#include <string>
#include <string_view>
#include <vector>

#include "sim/plan/scenario.h"

namespace roofcast {

/// One line each: the setting, and why it changes nothing here. Only what the scenario itself writes is judged, not
/// what a release, a recipe or a workload by name says.
std::vector<std::string> idle_settings(const ConfigTree& scenario, const Scenario& read);

/// Whether a scenario has this key, "engine.host.rank_skew".
bool writes(const ConfigTree& scenario, std::string_view dotted_key);

}  // namespace roofcast
