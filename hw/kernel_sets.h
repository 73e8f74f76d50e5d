#pragma once
// The sets of kernels by name: each is a file of configs/kernels (hw/kernel_rules.h).

#include <string>
#include <vector>

namespace roofcast {

/// The set of kernels that an engine runs which names no other.
inline constexpr const char* kDefaultKernels = "vllm";

/// Names of all sets, sorted.
const std::vector<std::string>& kernel_sets();

}  // namespace roofcast
