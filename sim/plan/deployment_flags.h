#pragma once
// Flags that stand for one key of a scenario, for the command line and the explorer's API.

#include <span>
#include <string>

#include "base/config_node.h"

namespace roofcast {

struct DeploymentFlag {
  const char* name;  ///< on the command line, without dashes
  const char* key;   ///< dotted key of a scenario
  const char* help;
};
std::span<const DeploymentFlag> deployment_flags();

/// The name of a flag in a URL query: `kv_cache_dtype` for `kv-cache-dtype`.
std::string query_name(const DeploymentFlag& flag);

/// The scenario with a whole trace as its workload. An empty `format` is recognised by the first line.
ConfigTree with_trace(const ConfigTree& scenario, const std::string& file, const std::string& format);

}  // namespace roofcast
