#include "hw/kernels/requested_experts.h"

#include <array>

#include "base/choice.h"

namespace roofcast {

std::span<const std::string_view> requested_experts_names() {
  static constexpr std::array<std::string_view, 8> kNames{"default", "low_latency", "modular", "cutlass",
                                                          "marlin",  "untuned",     "triton",  "trtllm_gen"};
  return kNames;
}

RequestedExperts parse_requested_experts(std::string_view name, const SourceLocation& location) {
  return static_cast<RequestedExperts>(choice_of("kernel of experts", name, requested_experts_names(), location));
}

}  // namespace roofcast
