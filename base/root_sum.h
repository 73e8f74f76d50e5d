#pragma once
#include <cmath>

namespace roofcast {

/// sqrt(x^2 + y^2), the same on every processor: -ffp-contract=off rounds each operation by itself (CMakeLists.txt).
/// The last digit of std::hypot is not. glibc from 2.35 on has two formulas: one with fused operations, for processors
/// that always have them, such as arm64, and one without (sysdeps/ieee754/dbl-64/e_hypot.c, kernel, __FP_FAST_FMA).
inline double root_sum_of_squares(double x, double y) { return std::sqrt(x * x + y * y); }

}  // namespace roofcast
