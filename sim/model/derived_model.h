#pragma once
#include "base/config_node.h"

namespace roofcast {

/// Builds the config of a model that is derived from another one:
///   base: NAME, prune: {layers, hidden, inter, heads, kv_heads, experts, top_k, expert_inter}   each at most the
///   base's
///                     drop_layers, drop_attention, drop_feed_forward: lists of layers; sparsity: 2:4
///   base: NAME, distilled_to: {the same}                                                        a student of any size
/// Returns the base's config with these sizes. A tree without `base` is returned unchanged. Throws ConfigError.
ConfigTree derive_model(const ConfigTree& tree);

}  // namespace roofcast
