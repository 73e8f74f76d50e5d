#include "calibrate/pooling.h"

#include <limits>

namespace roofcast::calibrate {

PoolingOrder pooling_order(const Eigen::MatrixXd& curvature, const std::vector<double>& at,
                           const std::vector<double>& back) {
  const auto n = static_cast<Eigen::Index>(at.size());
  Eigen::MatrixXd spread = curvature.ldlt().solve(Eigen::MatrixXd::Identity(n, n));
  Eigen::VectorXd now = Eigen::Map<const Eigen::VectorXd>(at.data(), n);
  std::vector<bool> is_back(at.size(), false);
  PoolingOrder out;
  double total = 0.0;
  for (Eigen::Index step = 0; step < n; ++step) {
    Eigen::Index best = -1;
    double least = std::numeric_limits<double>::infinity();
    for (Eigen::Index j = 0; j < n; ++j) {
      if (is_back[static_cast<std::size_t>(j)] || !(spread(j, j) > 0.0)) continue;
      const double moved = now(j) - back[static_cast<std::size_t>(j)];
      const double cost = moved * moved / (2.0 * spread(j, j));
      if (cost < least) least = cost, best = j;
    }
    if (best < 0) break;
    // Given the value of one, the mean of a Gaussian with this covariance moves and its spread shrinks.
    const Eigen::VectorXd along = spread.col(best) / spread(best, best);
    now -= along * (now(best) - back[static_cast<std::size_t>(best)]);
    now(best) = back[static_cast<std::size_t>(best)];
    spread -= along * spread.row(best).eval();
    is_back[static_cast<std::size_t>(best)] = true;
    total += least;
    out.which.push_back(static_cast<std::size_t>(best));
    out.cost.push_back(total);
    out.minimum.emplace_back(now.data(), now.data() + n);
  }
  return out;
}

}  // namespace roofcast::calibrate
