#pragma once
#include "sim/model/hf_config.h"

namespace roofcast {

/// Takes out of a model what a derived one has pruned, by the layer's number from 0 on: `drop_layers` whole layers
/// (ShortGPT, arXiv:2403.03853), `drop_attention` and `drop_feed_forward` one block of a layer (arXiv:2406.15786).
/// `sparsity: 2:4` makes half of the weights of its dense products zeros. Throws ConfigError for layers that are not
/// there, or whose caches others read.
ModelSpec without_pruned(const ModelSpec& model, HfConfig& in);

}  // namespace roofcast
