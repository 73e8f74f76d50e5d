#pragma once
#include "sim/model/hf_config.h"

namespace roofcast {

/// Removes layers by number from 0: `drop_layers` removes whole layers (ShortGPT, arXiv:2403.03853), `drop_attention`
/// and `drop_feed_forward` one block of a layer (arXiv:2406.15786). `sparsity: 2:4` makes half of the dense weights
/// zero. Throws ConfigError for layers that do not exist or whose caches other layers read.
ModelSpec without_pruned(const ModelSpec& model, HfConfig& in);

}  // namespace roofcast
