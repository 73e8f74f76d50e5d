#pragma once
#include <span>
#include <string_view>

#include "base/error.h"

namespace roofcast {

/// The expert kernel that an engine is configured to use where it has it.
enum class RequestedExperts { kDefault, kLowLatency, kModular, kCutlass, kMarlin, kUntuned, kTriton, kTrtllmGen };
/// default, low_latency, modular, cutlass, marlin, triton, trtllm_gen. "untuned" is measured by some benchmarks, but no
/// engine serves with it.
std::span<const std::string_view> requested_experts_names();
RequestedExperts parse_requested_experts(std::string_view name, const SourceLocation& location);

}  // namespace roofcast
