#pragma once
// Layers with a constant state, as configs describe them.

#include "sim/model/hf_config.h"

namespace roofcast {

StateLayer read_mamba1_layer(HfConfig& in);
StateLayer read_mamba2_layer(HfConfig& in);
StateLayer read_gated_delta_layer(HfConfig& in);
StateLayer read_convolution_layer(HfConfig& in);
StateLayer read_rg_lru_layer(HfConfig& in);
/// S4 and S4D, by the model_type.
StateLayer read_s4_layer(HfConfig& in);
/// RWKV-4 to 7 by `version`; the first layer of RWKV-7 has no values to mix with.
StateLayer read_rwkv_layer(HfConfig& in, int version, bool first);
/// Lightning attention over the heads of `attention`, all of them with keys of their own.
StateLayer lightning_layer(const GroupedAttention& attention);

}  // namespace roofcast
