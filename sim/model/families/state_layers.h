#pragma once
// Reads layers with a constant-size state from configs.

#include "sim/model/hf_config.h"

namespace roofcast {

StateLayer read_mamba1_layer(HfConfig& in);
StateLayer read_mamba2_layer(HfConfig& in);
StateLayer read_gated_delta_layer(HfConfig& in);
StateLayer read_convolution_layer(HfConfig& in);
StateLayer read_rg_lru_layer(HfConfig& in);
/// S4 or S4D, according to model_type.
StateLayer read_s4_layer(HfConfig& in);
/// RWKV-4 to 7 by `version`. The first layer of RWKV-7 has no value mixing.
StateLayer read_rwkv_layer(HfConfig& in, int version, bool first);
/// Lightning attention with the heads of `attention`; every head has its own keys.
StateLayer lightning_layer(const GroupedAttention& attention);

}  // namespace roofcast
