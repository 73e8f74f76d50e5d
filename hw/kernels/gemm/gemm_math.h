#pragma once
// Memory traffic of a GEMM, and the overlap of its parts.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/units.h"
#include "hw/dtype.h"
#include "hw/kernels/gemm.h"

namespace roofcast::product {

/// std::ceil for 0 <= x < 2^63. Without SSE4.1, std::ceil is a function call.
inline double ceiling(double x) {
  const auto whole = static_cast<double>(static_cast<std::int64_t>(x));
  return whole < x ? whole + 1.0 : whole;
}

inline double cube(double x) { return x * x * x; }

/// Overlap of compute and memory time, (a^3 + b^3)^(1/3): between their maximum (full overlap) and sum (none), and
/// smooth. The cube root of 1..2 takes two Halley steps, which is exact to the last bits and several times faster than
/// cbrt.
inline Seconds overlap(Seconds a, Seconds b) {
  const double high = std::max(a.base(), b.base());
  if (high <= 0.0) return Seconds{};
  const double target = 1.0 + cube(std::min(a.base(), b.base()) / high);
  double root = 0.74 + 0.26 * target;
  for (int step = 0; step < 2; ++step) root *= (cube(root) + 2.0 * target) / (2.0 * cube(root) + target);
  return Seconds(high * root);
}

/// The share of a working set that is still in a cache when it is read again. Falls linearly from 1 at the capacity to
/// 0 at twice the capacity, as for random replacement.
inline double hit_rate(Bytes working_set, Bytes capacity) { return std::clamp(2.0 - working_set / capacity, 0.0, 1.0); }

/// Bytes if each matrix is moved once.
struct Traffic {
  Bytes weights, activations, output;
  Bytes total() const { return weights + activations + output; }
};

inline Traffic traffic_of(const GemmShape& s) {
  const double weight =
      s.weight_scales.group_size > 0 ? bytes_per_element(s.weights, s.weight_scales) : bytes_per_element(s.weights);
  return {Bytes(s.n * s.k * weight), Bytes(s.m * s.k * bytes_per_element(s.activations)),
          Bytes(s.m * s.n * s.output_bytes)};
}

}  // namespace roofcast::product
