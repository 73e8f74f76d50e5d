#pragma once
#include <string>

#include "base/error.h"

namespace roofcast::cli {

/// "; did you mean engine.max_num_seqs?" where --set named a key without the map that holds it, or a workload has what
/// belongs to its arrivals; else empty.
std::string set_hint(const ConfigError& error);

}  // namespace roofcast::cli
