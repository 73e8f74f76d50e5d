#include "sim/serve/numpy_lengths.h"

#include <bit>
#include <cmath>

namespace roofcast {

int draw_as_numpy(std::mt19937& twister, int low, int high) {
  const auto range = static_cast<std::uint32_t>(high - low);
  if (range == 0) return low;
  const std::uint32_t mask = std::bit_ceil(range + 1) - 1;
  std::uint32_t value = 0;
  do {
    value = static_cast<std::uint32_t>(twister()) & mask;
  } while (value > range);
  return low + static_cast<int>(value);
}

std::shared_ptr<const std::vector<RequestLengths>> numpy_lengths(const LengthSpec::Uniform& prompts,
                                                                 const LengthSpec::Uniform& outputs,
                                                                 std::int64_t requests, double growth) {
  std::mt19937 twister(0);
  auto lengths = std::make_shared<std::vector<RequestLengths>>(static_cast<std::size_t>(requests));
  for (RequestLengths& request : *lengths)
    request.prompt_tokens = static_cast<int>(std::lround(growth * draw_as_numpy(twister, prompts.min, prompts.max)));
  for (RequestLengths& request : *lengths) request.output_tokens = draw_as_numpy(twister, outputs.min, outputs.max);
  return lengths;
}

}  // namespace roofcast
