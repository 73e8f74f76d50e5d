#pragma once
// Resolves a format name for one model, according to the scales of its published checkpoint.

#include <string_view>

#include "sim/model/model_spec.h"

namespace roofcast {

/// The `precision` name of fp8 with one scale per tensor or channel, whatever the published checkpoint has.
inline constexpr std::string_view kTensorFp8 = "fp8_tensor";

/// fp8_block for `fp8` if the published fp8 checkpoint of the model has scales per 128 x 128 block: its own weights
/// have that format, or configs/checkpoints/formats.yaml lists its model_type (`block_fp8`). Other formats are
/// unchanged.
Dtype stored_format(const ModelSpec& model, Dtype named);

}  // namespace roofcast
