#include "hw/kernels/requested_experts.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/text.h"

namespace roofcast {

std::span<const std::string_view> requested_experts_names() {
  static constexpr std::array<std::string_view, 8> kNames{"default", "low_latency", "modular", "cutlass",
                                                          "marlin",  "untuned",     "triton",  "trtllm_gen"};
  return kNames;
}

RequestedExperts parse_requested_experts(std::string_view name, const Mark& mark) {
  const std::span<const std::string_view> names = requested_experts_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<RequestedExperts>(found - names.begin());
  throw ConfigError(mark,
                    unknown_name("kernel of experts", name, std::vector<std::string>(names.begin(), names.end())));
}

}  // namespace roofcast
