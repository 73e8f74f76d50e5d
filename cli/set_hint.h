#pragma once
#include <string>

#include "base/error.h"

namespace roofcast::cli {

/// "; did you mean engine.max_num_seqs?" if --set named a key without its map, or without `arrivals` in a workload;
/// else empty.
std::string set_hint(const ConfigError& error);

}  // namespace roofcast::cli
