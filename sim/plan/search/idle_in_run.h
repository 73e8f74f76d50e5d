#pragma once
// Settings that a scenario writes and without which its answer is the same: limits that are not reached, times that
// others hide, switches of what does not happen.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/plan/scenario.h"

namespace roofcast {

/// A scenario without one of its settings (null if the setting is in a list), and with other values of it: twice and
/// half a number, the other of true and false.
struct LeftOut {
  std::string key;
  ConfigTree without;
  std::vector<ConfigTree> changed;
};

/// The scenario without the key. Nothing if the key is not written, or a line of `said` names it or a map around it.
std::optional<LeftOut> left_out(const ConfigTree& scenario, std::string_view key, const std::vector<std::string>& said);

/// The settings of the engine, the GPU, a named model, routing, drafts, adapters and the fleet, each left out in turn.
/// What repeats the named engine, GPU or model is no setting.
std::vector<LeftOut> settings_left_out(const ConfigTree& scenario, const std::vector<std::string>& said);

/// Whether the answer of none of these scenarios differs, of those that are not refused.
bool is_idle(const LeftOut& setting, const std::function<bool(const ConfigTree&)>& same_answer);

/// One line for each of these settings without which the run is the same to the last digit. The run is repeated for
/// each setting, so nothing is said of long runs.
std::vector<std::string> idle_in_run(const ConfigTree& scenario, const Scenario& read, Fidelity fidelity,
                                     const ServingMetrics& metrics);

}  // namespace roofcast
