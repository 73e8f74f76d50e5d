#pragma once
// Which settings of a forecast a launch command expresses, and which it cannot.

#include <string>
#include <string_view>
#include <vector>

#include "sim/serve/simulation.h"

namespace roofcast {
struct Deployment;
struct EngineSpec;
}  // namespace roofcast

namespace roofcast::reports {

/// An `engine` key by which two engines differ, with the value in the first one: "watermark: 0.05". A list or a group
/// without a short form is named alone: "host".
struct SettingChange {
  std::string key, value;
};
std::vector<SettingChange> changed_settings(const EngineSpec& engine, const EngineSpec& plain);

/// Whether a command of `engine` at `version` (a name of --emit) can express the setting.
bool has_launch_flag(std::string_view engine, const std::string& version, std::string_view key);

/// One line per setting in which the forecast differs from the release's defaults and which the command does not
/// express.
std::vector<std::string> settings_not_set(const Deployment& deployment, const EngineSpec& plain,
                                          const ServingOptions& serving, const std::string& engine);

}  // namespace roofcast::reports
