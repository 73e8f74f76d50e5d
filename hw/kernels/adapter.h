#pragma once
// The grouped products of low-rank adapters: rows of one batch, each with the matrices of its own adapter.

#include "hw/cost.h"

namespace roofcast {

/// y += (x A) B beside one product of a layer, on one GPU. A product of `slices` parts (q, k and v) has an A for each.
struct AdapterShape {
  double tokens = 0;
  double adapters = 0;  ///< number of different adapters that the tokens ask for
  double rank = 0;
  double k = 0, n = 0;  ///< inputs and outputs of the product beside it
  double slices = 1;
};

/// Both kernels: rows shrink to the rank, then expand to the outputs.
Cost adapter_product(const AdapterShape& shape, const Machine& machine);

}  // namespace roofcast
