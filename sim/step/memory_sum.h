#pragma once
// Explains why something does not fit, with numbers that add up.

#include <string>

#include "base/units.h"

namespace roofcast {

struct Deployment;
struct MemoryPlan;

/// "weights 29.3 GB + reserved 0.6 GB + ... = 91.2 GB a GPU, of 85.0 GB": all memory, including `cache` bytes of KV
/// cache and `buffers` bytes beyond the planned activations.
std::string memory_sum(const Deployment& deployment, const MemoryPlan& plan, Bytes cache = Bytes(0),
                       Bytes buffers = Bytes(0));

}  // namespace roofcast
