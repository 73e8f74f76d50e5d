#pragma once
#include <cmath>

namespace roofcast {

/// sqrt(x^2 + y^2). Each operation is rounded as IEEE 754 says, so the result is the same on every processor;
/// std::hypot's last digit is not (glibc 2.36 computes it with fused operations on arm64 alone).
inline double root_sum_of_squares(double x, double y) { return std::sqrt(x * x + y * y); }

}  // namespace roofcast
