#pragma once
#include <memory>

#include "sim/plan/search/ranks.h"

namespace roofcast {

/// The processes of the `mpirun` that started this one; null when it was started alone. Throws ConfigError when there
/// are several and the module that speaks MPI is not there.
std::unique_ptr<Ranks> ranks_of_mpirun();

}  // namespace roofcast
