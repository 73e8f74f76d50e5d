#pragma once
// Kernels that two engines share: what was fitted to the rows of one serves the other, too.

#include <vector>

#include "calibrate/gpu_file.h"
#include "hw/efficiency.h"
#include "hw/gpu_spec.h"

namespace roofcast::calibrate {

/// What other sets of kernels take from `fitted`, marked as carried over; a block that the other set's rows were fitted
/// to themselves is left alone. On Blackwell vLLM runs latent attention by TensorRT-LLM's generated kernels, and
/// TensorRT-LLM the NVFP4 products that vLLM's table has tuned and block-scaled experts for few tokens that only
/// vLLM's table has.
std::vector<FittedSet> shared_constants(const std::vector<FittedSet>& fitted, const GpuSpec& gpu);

}  // namespace roofcast::calibrate
