#pragma once
// What dense blocks have in common, also those that stand beside routed experts.

#include <string>

#include "sim/model/operator_list.h"
#include "sim/model/weights.h"

namespace roofcast {

/// Gate and up in one product, and down.
void add_block_weights(LayerWeights& out, const std::string& prefix, const DenseFeedForward& block, double hidden,
                       const Sharding& sharding);
/// Reads gate and up, writes their product: `written` of 16 bit a value.
void add_activation(OperatorList& list, const std::string& name, const DenseFeedForward& block, double count,
                    double tokens, double written = 1.0);

}  // namespace roofcast
