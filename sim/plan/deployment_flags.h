#pragma once
// Flags that stand for one key of a scenario: the command line and the explorer's API take them from here.

#include <span>
#include <string>

#include "base/config_node.h"

namespace roofcast {

struct DeploymentFlag {
  const char* name;  ///< of the command line, without dashes
  const char* key;   ///< dotted key of a scenario
  const char* help;
};
std::span<const DeploymentFlag> deployment_flags();

/// The name of a flag in a query: `kv_cache_dtype` of `kv-cache-dtype`.
std::string query_name(const DeploymentFlag& flag);

/// The scenario with a whole trace in place of its workload; `format` empty: known by the first line.
ConfigTree with_trace(const ConfigTree& scenario, const std::string& file, const std::string& format);

}  // namespace roofcast
