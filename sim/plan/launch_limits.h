#pragma once
// Settings that an engine refuses at launch.

#include <string>

#include "base/config_node.h"
#include "base/error.h"

namespace roofcast {

struct Deployment;

/// Throws ConfigError if the engine refuses settings of the scenario's `engine` at launch. `forced` skips checks that
/// can be overridden (VLLM_ALLOW_LONG_MAX_MODEL_LEN). A `block_size` of 0 means a contiguous cache.
void check_launch(const Deployment& deployment, const ConfigTree& engine, bool forced);
/// The same for the draft model; `location` is the source location of its name.
void check_draft(const Deployment& target, const Deployment& draft, const SourceLocation& location);

/// Maximum tokens per sequence; 0: unlimited.
struct ServedContext {
  double asked = 0;  ///< max_model_len, else the model's context
  double pool = 0;   ///< tokens that the KV cache holds
  bool pool_binds() const { return asked > 0 && pool < asked; }
};
/// Without a KV cache, and for the ideal roofline, the pool is no limit.
ServedContext served_context(const Deployment& deployment);
/// What an engine does if its cache holds fewer tokens than requested.
std::string context_text(const Deployment& deployment, const ServedContext& context);

}  // namespace roofcast
