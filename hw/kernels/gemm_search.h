#pragma once
// What the search for the fastest tile of a product is held against.

#include "hw/kernels/gemm.h"

namespace roofcast {

/// gemm_with() by trying every tile and split. Equal to the last bit, and slower.
Cost gemm_by_every_tile(const GemmShape& shape, const GemmParameters& constants, const GpuSpec& gpu,
                        KernelFamily family, Timing timing);

}  // namespace roofcast
