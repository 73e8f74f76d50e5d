#pragma once
// Which layers store keys and values, and which reuse those of an earlier layer.

#include <vector>

#include "sim/model/hf_config.h"

namespace roofcast {

/// Cross-layer attention (Brandon et al. 2024), as two kinds of configs state it; `layers` are first to last.
///   cla_share_factor s (use_cla)   of every s layers of a kind the first owns the cache, the others read it.
///                                  Sliding-window layers share with neighbours, global layers with each other
///                                  (research.character.ai, "Optimizing AI Inference", 2024).
///   num_kv_shared_layers n         the last n layers read the last owning layer with the same window (Gemma 3n).
/// A layer can only read a cache with its own window, heads and widths: anything else is a ConfigError.
/// `shared` is the default of num_kv_shared_layers.
void share_caches(HfConfig& in, std::vector<GroupedAttention>& layers, int shared = 0);

/// cla_share_factor, at least 1.
int share_factor(HfConfig& in, int default_value);

}  // namespace roofcast
