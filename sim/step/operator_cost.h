#pragma once
// The time of one operator on one machine: hands each kind of work to its kernel model.

#include "hw/cost.h"
#include "sim/model/operators.h"

namespace roofcast {

/// Of one call. A collective's ranks reach each other without the network as far as the GPU's NVLink domain goes.
Cost cost_of(const Work& work, const Machine& machine);

/// How one call is started.
struct Launches {
  double eager;     ///< launches that an eager step pays the host for
  double replayed;  ///< kernels in a CUDA graph
  bool collective;  ///< ranks meet in it
};
Launches launches_of(const Work& work, const Machine& machine);

}  // namespace roofcast
