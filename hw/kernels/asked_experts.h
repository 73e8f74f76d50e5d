#pragma once
#include <span>
#include <string_view>

#include "base/error.h"

namespace roofcast {

/// A kernel that an engine was told to take for its experts, where it has it.
enum class AskedExperts { kDefault, kLowLatency, kModular, kCutlass, kMarlin, kUntuned, kTriton, kTrtllmGen };
/// default, low_latency, modular, cutlass, marlin, triton, trtllm_gen; untuned is what some benchmarks time, and no
/// engine serves.
std::span<const std::string_view> asked_experts_names();
AskedExperts parse_asked_experts(std::string_view name, const Mark& mark);

}  // namespace roofcast
