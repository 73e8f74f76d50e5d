#pragma once
// Which settings an engine's command line has, by its releases: `flags` and `own` of its document.

#include <string>
#include <string_view>

#include "base/config_node.h"
#include "base/config_release.h"

namespace roofcast {

/// Whether the release's command line says the setting: `flags: {always: [setting], setting: VERSION}`, or
/// `setting: {since, command, until}`: it came with `since`, and its flag is that of `command` until `until`. An empty
/// version is the newest.
bool has_flag(const ConfigTree& document, const std::string& version, std::string_view setting);

/// Throws ConfigError where `changes` sets what a later release brought, unless it is off (false, 0, none) or as
/// the release has it.
void check_introduced(const ConfigTree& document, const Release& release, const ConfigTree& changes);

/// Throws ConfigError where `changes` sets what another document of this kind calls its `own` ("setting" or
/// "setting: value") and this one does not.
void check_own(std::string_view kind, const ConfigTree& document, const ConfigTree& changes);

}  // namespace roofcast
