#pragma once
// Which layers keep keys and values, and which read those of an earlier one.

#include <vector>

#include "sim/model/hf_config.h"

namespace roofcast {

/// Cross-layer attention (Brandon et al. 2024), as two kinds of configs say it; `layers` are first to last.
///   cla_share_factor s (use_cla)   of every s layers of a kind the first owns, the others read: neighbours, and layers
///                                  that see everything across those with a window (research.character.ai,
///                                  "Optimizing AI Inference", 2024)
///   num_kv_shared_layers n         the last n layers read the last owning layer that sees what they see (Gemma 3n)
/// A layer can only read a cache that was written for its own window, heads and widths: anything else is a ConfigError.
/// `shared` is num_kv_shared_layers where the config has none.
void share_caches(HfConfig& in, std::vector<GroupedAttention>& layers, int shared = 0);

/// cla_share_factor, at least 1.
int share_factor(HfConfig& in, int otherwise);

}  // namespace roofcast
