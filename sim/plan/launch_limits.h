#pragma once
// Settings with which an engine ends at its start.

#include "base/config_node.h"
#include "sim/step/deployment.h"

namespace roofcast {

/// Throws ConfigError where the scenario's `engine` asks for what the engine refuses at its launch. `forced` lets pass
/// what the engine can be talked into (VLLM_ALLOW_LONG_MAX_MODEL_LEN); a `block_size` of 0 is a cache without pages.
void check_launch(const Deployment& deployment, const ConfigTree& engine, bool forced);
/// The same for the model that drafts; `mark` is where it is named.
void check_draft(const Deployment& target, const Deployment& draft, const Mark& mark);

}  // namespace roofcast
