#pragma once
// The grouped GEMMs of low-rank adapters (LoRA): each row of a batch uses the matrices of its own adapter.

#include "hw/cost.h"

namespace roofcast {

/// y += (x A) B beside one GEMM of a layer, on one GPU. A GEMM of `slices` parts (q, k and v) has one A per part.
struct AdapterShape {
  double tokens = 0;
  double adapters = 0;  ///< number of different adapters in the batch
  double rank = 0;
  double k = 0, n = 0;  ///< inputs and outputs of the GEMM
  double slices = 1;
};

/// Both kernels: shrink to the rank, then expand to the outputs.
Cost adapter_product(const AdapterShape& shape, const Machine& machine);

}  // namespace roofcast
