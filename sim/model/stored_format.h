#pragma once
// What a format's word means for one model: how its published checkpoint is scaled.

#include <string_view>

#include "sim/model/model_spec.h"

namespace roofcast {

/// fp8 with a scale for a whole tensor or channel, whatever the published checkpoint has: a word of `precision`.
inline constexpr std::string_view kTensorFp8 = "fp8_tensor";

/// fp8_block for fp8 of a model whose published fp8 checkpoint has scales for blocks of 128 x 128: its own weights are
/// of that format, or configs/checkpoints/formats.yaml lists its model_type (`block_fp8`). Other formats are as named.
Dtype stored_format(const ModelSpec& model, Dtype named);

}  // namespace roofcast
