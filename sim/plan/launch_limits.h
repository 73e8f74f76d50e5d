#pragma once
// Settings with which an engine ends at its start.

#include <string>

#include "base/config_node.h"
#include "base/error.h"

namespace roofcast {

struct Deployment;

/// Throws ConfigError where the scenario's `engine` asks for what the engine refuses at its launch. `forced` lets pass
/// what the engine can be talked into (VLLM_ALLOW_LONG_MAX_MODEL_LEN); a `block_size` of 0 is a cache without pages.
void check_launch(const Deployment& deployment, const ConfigTree& engine, bool forced);
/// The same for the model that drafts; `mark` is where it is named.
void check_draft(const Deployment& target, const Deployment& draft, const Mark& mark);

/// Tokens of the longest sequence; 0: no limit is known.
struct ServedContext {
  double asked = 0;  ///< the engine's limit, else the model's context
  double pool = 0;   ///< tokens that the KV cache holds
  bool pool_binds() const { return asked > 0 && pool < asked; }
};
/// Without a KV cache, and under the datasheet's arithmetic, the pool never binds.
ServedContext served_context(const Deployment& deployment);
/// What an engine does if its cache holds less than is asked for.
std::string context_text(const Deployment& deployment, const ServedContext& context);

}  // namespace roofcast
