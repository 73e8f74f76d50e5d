#pragma once
// Finds the fastest tiling of a GEMM.

#include "hw/kernels/gemm/gemm_kernel.h"

namespace roofcast {

/// One GEMM on one GPU, for the constants of its kernel.
struct TiledProduct {
  Seconds time{};     ///< without the launch
  Seconds compute{};  ///< of the fastest tiling, under the power limit
  Seconds memory{};
};
/// `compute` is the format that the matrix units multiply.
TiledProduct fastest_tiles(const GemmShape& shape, const MatmulKernel& kernel, const GemmParameters& constants,
                           const GpuSpec& gpu, Dtype compute, const GemmRun& run);

}  // namespace roofcast
