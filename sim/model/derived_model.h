#pragma once
#include "base/config_node.h"

namespace roofcast {

/// A model made from another one:
///   base: NAME, prune: {layers, hidden, inter, heads, kv_heads, experts, top_k, expert_inter}   none above the base's
///                     drop_layers, drop_attention, drop_feed_forward: lists of layers; sparsity: 2:4
///   base: NAME, distilled_to: {the same}                                                        a student of any size
/// Returns the base's config with those sizes in their place; a tree without `base` comes back as it is.
ConfigTree derive_model(const ConfigTree& tree);

}  // namespace roofcast
