#pragma once
// Shared by dense blocks, including those next to routed experts.

#include <string>

#include "sim/model/operator_list.h"
#include "sim/model/weights.h"

namespace roofcast {

/// Adds the weights: gate and up as one matrix, and down.
void add_block_weights(LayerWeights& out, const std::string& prefix, const DenseFeedForward& block, double hidden,
                       const Sharding& sharding);
/// Reads gate and up, writes the activation; `written` is its size relative to 16 bit per value.
void add_activation(OperatorList& list, const std::string& name, const DenseFeedForward& block, double count,
                    double tokens, double written = 1.0);

}  // namespace roofcast
