#pragma once
// The time of one operator on one machine: dispatches each kind of work to its kernel model.

#include "hw/cost.h"
#include "sim/model/operators.h"

namespace roofcast {

/// The cost of one call. Collectives within the GPU's fabric domain do not use the network.
Cost cost_of(const Work& work, const Machine& machine);

/// Launches of one call.
struct Launches {
  double eager;     ///< launches that an eager step pays the host for
  double replayed;  ///< kernels in a CUDA graph
  bool collective;  ///< the ranks synchronize in it
};
Launches launches_of(const Work& work, const Machine& machine);

}  // namespace roofcast
