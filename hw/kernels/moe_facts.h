#pragma once
// Which tiles the grouped products of each engine take on each architecture.

#include "hw/gpu_spec.h"
#include "hw/kernels/moe.h"

namespace roofcast {

enum class KernelFamily;

/// Sets what is a fact of the kernel and not fitted: rule and range of the tiles, rows that it works on, whether it
/// gathers. From vLLM's default Triton config and the engines' sources; where the source does not say, the best of the
/// rules on shapes left out. Source: docs/equations-moe.md.
void put_moe_facts(MoeParameters& p, MoeVariant variant, Dtype weights, const GpuSpec& gpu, KernelFamily family);

}  // namespace roofcast
