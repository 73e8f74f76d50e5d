#pragma once
// Which release of an engine a scenario means, where it does not say so itself.

#include <string>

#include "base/config_node.h"

namespace roofcast {

struct EngineSpec;

/// The release that the source of the scenario's recipe ran on the client's day (`images` of configs/recipes), where
/// `engine`, a name or a map, has no version; empty: it is not known.
std::string image_of_day(const ConfigTree& scenario, const ConfigTree& engine, bool disaggregated);

/// The listed release whose settings a patch has that is not listed itself; empty: it is listed, or its engine has no
/// releases.
std::string release_taken_for(const EngineSpec& engine);

}  // namespace roofcast
