#pragma once
// The time of one operator on one machine: hands each kind of work to its kernel model.

#include "hw/cost.h"
#include "sim/model/operators.h"

namespace roofcast {

/// Of one call. A collective's ranks reach each other without the network as far as the GPU's NVLink domain goes.
Cost cost_of(const Work& work, const Machine& machine);

/// Kernels that one call launches: what an eager step pays the host for.
double launches_of(const Work& work, const Machine& machine);
/// Kernels of it in a CUDA graph.
double replayed_kernels(const Work& work, const Machine& machine);
/// Whether ranks meet in it.
bool is_collective(const Work& work);

}  // namespace roofcast
