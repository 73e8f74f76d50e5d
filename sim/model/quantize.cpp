#include "sim/model/quantize.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/normal.h"

namespace roofcast {

Bytes QuantizedGroup::bytes(double scale_bits) const {
  return Bytes((static_cast<double>(integers.size()) * bits + scale_bits) / 8.0);
}

QuantizedGroup quantize_absmax(std::span<const double> weights, int bits) {
  SIM_CHECK(bits >= 2 && bits <= 16, "integers of 2 to 16 bits");
  double largest = 0;
  for (double w : weights) largest = std::max(largest, std::abs(w));
  const int top = (1 << (bits - 1)) - 1;
  QuantizedGroup group{.integers = {}, .scale = largest / top, .bits = bits};
  for (double w : weights) group.integers.push_back(largest > 0 ? static_cast<int>(std::round(w / largest * top)) : 0);
  return group;
}

double largest_error(std::span<const double> weights, const QuantizedGroup& group) {
  double largest = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) largest = std::max(largest, std::abs(weights[i] - group.value(i)));
  return largest;
}

std::vector<double> nf4_levels() {
  const double offset = (1 - 1.0 / 32 + 1 - 1.0 / 30) / 2, top = normal_quantile(offset);
  std::vector<double> levels{0.0};
  for (int i = 0; i < 8; ++i) levels.push_back(normal_quantile(offset + (0.5 - offset) * i / 8.0) / top);
  for (int i = 0; i < 7; ++i) levels.push_back(-normal_quantile(offset + (0.5 - offset) * i / 7.0) / top);
  std::sort(levels.begin(), levels.end());
  return levels;
}

}  // namespace roofcast
