#include "sim/plan/measured/bench_lengths.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace roofcast {
namespace {

constexpr double kRangeRatio = 0.8;

int shortest(int longest) { return std::max(1, static_cast<int>(longest * kRangeRatio)); }

}  // namespace

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

std::shared_ptr<const std::vector<RequestLengths>> inferencex_lengths(int isl, int osl, std::int64_t requests,
                                                                      double growth) {
  std::mt19937 twister(0);
  auto lengths = std::make_shared<std::vector<RequestLengths>>(static_cast<std::size_t>(requests));
  for (RequestLengths& request : *lengths)
    request.prompt_tokens = static_cast<int>(std::lround(growth * draw_as_numpy(twister, shortest(isl), isl)));
  for (RequestLengths& request : *lengths) request.output_tokens = draw_as_numpy(twister, shortest(osl), osl);
  return lengths;
}

}  // namespace roofcast
