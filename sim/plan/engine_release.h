#pragma once
// Determines the release of an engine if the scenario does not name one.

#include <string>

#include "base/config_node.h"

namespace roofcast {

struct EngineSpec;

/// The release that the source of the scenario's recipe used on the date of the client (`images` of configs/recipes),
/// if `engine` (a name or a map) has no version. Empty: unknown.
std::string image_of_day(const ConfigTree& scenario, const ConfigTree& engine, bool disaggregated);

/// The listed release whose settings stand in for an unlisted patch release. Empty: the release itself is listed, or
/// the engine has no releases.
std::string release_taken_for(const EngineSpec& engine);

}  // namespace roofcast
