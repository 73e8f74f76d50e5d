#pragma once
// The output of `roofcast KIND NAME` for engines and for specs that describe themselves.

#include <string>

#include <nlohmann/json.hpp>

#include "base/config_node.h"

namespace roofcast::reports {

/// The spec itself: as table its YAML, as csv rows of a dotted key and its value, as json after the head of a result.
std::string as_written(const ConfigTree& tree, const std::string& format, const nlohmann::ordered_json& head);
/// A file of settings, or `NAME[@VERSION]` with the source of each. Throws ConfigError for an unknown name.
std::string engine_report(const std::string& name, const std::string& format);

/// The output of `roofcast KIND NAME --format json` for one of models, gpus, engines, workloads, recipes, clients.
std::string catalog_entry_json(const std::string& kind, const std::string& name);

}  // namespace roofcast::reports
