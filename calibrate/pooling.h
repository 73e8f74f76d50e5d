#pragma once
// Which constants of a fit may stay what they are elsewhere, by the curvature of the loss at its minimum.

#include <Eigen/Dense>
#include <cstddef>
#include <vector>

namespace roofcast::calibrate {

/// Constants put back one after the other, the cheapest first; entry i tells of the first i + 1 of them.
struct PoolingOrder {
  std::vector<std::size_t> which;            ///< the constant
  std::vector<double> cost;                  ///< what the loss rises by, of all so far
  std::vector<std::vector<double>> minimum;  ///< all values then: the others have moved to suit
};

/// For a loss  l(u) = l(at) + (u - at)' H (u - at) / 2  and values `back` that the constants may be put back to.
/// Putting back one costs  (at_j - back_j)^2 / 2 (H^-1)_jj  when the others follow. `curvature` H must be positive
/// definite.
PoolingOrder pooling_order(const Eigen::MatrixXd& curvature, const std::vector<double>& at,
                           const std::vector<double>& back);

}  // namespace roofcast::calibrate
