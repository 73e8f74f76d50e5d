#include "base/normal.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace roofcast {

double normal_quantile(double probability) {
  const double tail = std::min(probability, 1.0 - probability);
  const double t = std::sqrt(-2.0 * std::log(tail));
  double z = (2.515517 + t * (0.802853 + t * 0.010328)) / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t;
  for (int i = 0; i < 2; ++i) {  // in the lower tail, where no digits cancel
    const double excess = 0.5 * std::erfc(-z / std::numbers::sqrt2) - tail;
    const double step = excess * std::sqrt(2.0 * std::numbers::pi) * std::exp(z * z / 2.0);
    z -= step / (1.0 + z * step / 2.0);
  }
  return probability < 0.5 ? z : -z;
}

}  // namespace roofcast
