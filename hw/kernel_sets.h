#pragma once
// The sets of kernels by name: each is a file of configs/kernels (hw/kernel_rules.h).

#include <string>
#include <vector>

namespace roofcast {

/// The kernel set of an engine that names none.
inline constexpr const char* kDefaultKernels = "vllm";

/// Names of all kernel sets, sorted.
const std::vector<std::string>& kernel_sets();

}  // namespace roofcast
