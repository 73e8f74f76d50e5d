#pragma once
#include <cmath>

namespace roofcast {

/// sqrt(x^2 + y^2), the same on every processor: -ffp-contract=off rounds each operation by itself (CMakeLists.txt).
/// The last digit of std::hypot differs between x86-64 and arm64 (packaging/same-bytes.sh).
inline double root_sum_of_squares(double x, double y) { return std::sqrt(x * x + y * y); }

}  // namespace roofcast
