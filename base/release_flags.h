#pragma once
// Which settings an engine's command line offers in each release, from `flags` and `own` of its document.

#include <string>
#include <string_view>

#include "base/config_node.h"
#include "base/config_release.h"

namespace roofcast {

/// Whether the release has a flag for the setting. `flags: {always: [setting], setting: VERSION}` names the first
/// version with the flag. In `setting: {since, command, until}`, the flag is called `command` before `until`. An empty
/// version is the newest.
bool has_flag(const ConfigTree& document, const std::string& version, std::string_view setting);

/// Throws ConfigError if `changes` sets something that came with a later release, unless the value turns it off (false,
/// 0, none) or is the release's own.
void check_introduced(const ConfigTree& document, const Release& release, const ConfigTree& changes);

/// Throws ConfigError if `changes` sets something that only another document of this kind lists under `own` ("setting"
/// or "setting: value").
void check_own(std::string_view kind, const ConfigTree& document, const ConfigTree& changes);

}  // namespace roofcast
