#pragma once
#include <cmath>

namespace roofcast {

/// sqrt(x^2 + y^2) with the same last digit on every processor, because -ffp-contract=off rounds each operation
/// (CMakeLists.txt). std::hypot differs: glibc from 2.35 on uses fused operations where the processor always has them,
/// such as arm64 (sysdeps/ieee754/dbl-64/e_hypot.c, kernel, __FP_FAST_FMA).
inline double root_sum_of_squares(double x, double y) { return std::sqrt(x * x + y * y); }

}  // namespace roofcast
