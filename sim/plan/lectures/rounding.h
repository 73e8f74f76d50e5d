#pragma once
// Rounding of weights to few bits, for one group that shares a scale.

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/normal.h"
#include "base/units.h"

namespace roofcast {

/// Integers and their scale: w ~ integer * scale.
struct QuantizedGroup {
  std::vector<int> integers;
  double scale = 0;
  int bits = 8;

  double value(std::size_t i) const { return integers[i] * scale; }
  /// Storage of the integers and one scale of `scale_bits`.
  Bytes bytes(double scale_bits) const {
    return Bytes((static_cast<double>(integers.size()) * bits + scale_bits) / 8.0);
  }
};

/// Symmetric absmax: scale = max|w| / (2^(bits-1) - 1), integer = round(w / scale), halves away from zero. The error is
/// at most scale / 2. Source: Dettmers et al., 2022 (LLM.int8()), arXiv:2208.07339, section 2.1.1 (absmax
/// quantization).
inline QuantizedGroup quantize_absmax(std::span<const double> weights, int bits = 8) {
  SIM_CHECK(bits >= 2 && bits <= 16, "integers of 2 to 16 bits");
  double largest = 0;
  for (double w : weights) largest = std::max(largest, std::abs(w));
  const int top = (1 << (bits - 1)) - 1;
  QuantizedGroup group{.integers = {}, .scale = largest / top, .bits = bits};
  for (double w : weights) group.integers.push_back(largest > 0 ? static_cast<int>(std::round(w / largest * top)) : 0);
  return group;
}

/// The largest |w - integer * scale| of the group.
inline double largest_error(std::span<const double> weights, const QuantizedGroup& group) {
  double largest = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) largest = std::max(largest, std::abs(weights[i] - group.value(i)));
  return largest;
}

/// The 16 levels of NF4: quantiles of a standard normal between offset = (1 - 1/32 + 1 - 1/30) / 2 and 1/2, eight
/// positive, seven negative and zero, scaled to [-1, 1]. Source: Dettmers et al., 2023 (QLoRA), arXiv:2305.14314,
/// section 3 and appendix E; bitsandbytes' create_normal_map.
inline std::vector<double> nf4_levels() {
  const double offset = (1 - 1.0 / 32 + 1 - 1.0 / 30) / 2, top = normal_quantile(offset);
  std::vector<double> levels{0.0};
  for (int i = 0; i < 8; ++i) levels.push_back(normal_quantile(offset + (0.5 - offset) * i / 8.0) / top);
  for (int i = 0; i < 7; ++i) levels.push_back(-normal_quantile(offset + (0.5 - offset) * i / 7.0) / top);
  std::sort(levels.begin(), levels.end());
  return levels;
}

}  // namespace roofcast
