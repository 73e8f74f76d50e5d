#pragma once
// Decides from the curvature of the loss at its minimum which constants of a fit may keep their inherited values.

#include <Eigen/Dense>
#include <cstddef>
#include <vector>

namespace roofcast::calibrate {

/// The order in which constants are set back, the cheapest first; entry i describes the first i + 1 of them.
struct PoolingOrder {
  std::vector<std::size_t> which;            ///< the constant
  std::vector<double> cost;                  ///< increase of the loss for all of them so far
  std::vector<std::vector<double>> minimum;  ///< all values at that point: the others are re-optimized
};

/// For a loss  l(u) = l(at) + (u - at)' H (u - at) / 2  and the values `back` that constants may be set back to.
/// Setting back one costs  (at_j - back_j)^2 / 2 (H^-1)_jj  if the others are re-optimized. `curvature` H must be
/// positive definite.
PoolingOrder pooling_order(const Eigen::MatrixXd& curvature, const std::vector<double>& at,
                           const std::vector<double>& back);

}  // namespace roofcast::calibrate
