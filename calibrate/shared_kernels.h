#pragma once
// Kernels that two engines share: constants fitted to the rows of one are used for the other, too.

#include <vector>

#include "calibrate/gpu_file.h"
#include "hw/efficiency.h"
#include "hw/gpu_spec.h"

namespace roofcast::calibrate {

/// The blocks that other kernel sets take from `fitted`, marked as transferred. A block that was fitted to the other
/// set's own rows is left alone. On Blackwell, vLLM runs TensorRT-LLM's generated kernels for latent attention.
/// TensorRT-LLM takes tuned NVFP4 GEMMs, and block-scaled experts for few tokens, which only vLLM's table has.
std::vector<FittedSet> shared_constants(const std::vector<FittedSet>& fitted, const GpuSpec& gpu);

}  // namespace roofcast::calibrate
