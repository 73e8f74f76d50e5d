#pragma once
// Why something does not fit, in numbers that add up.

#include <string>

#include "base/units.h"

namespace roofcast {

struct Deployment;
struct MemoryPlan;

/// "weights 29.3 GB + reserved 0.6 GB + ... = 91.2 GB a GPU, of 85.0 GB": all that takes memory, with the given bytes
/// of caches and `buffers` beyond the planned activations.
std::string memory_sum(const Deployment& deployment, const MemoryPlan& plan, Bytes cache = Bytes(0),
                       Bytes buffers = Bytes(0));

}  // namespace roofcast
