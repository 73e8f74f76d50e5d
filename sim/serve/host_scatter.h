#pragma once
// How the host's times differ from one request, or one step, to the next.

#include <cmath>
#include <cstdint>

#include "base/random.h"
#include "sim/step/deployment.h"

namespace roofcast {

/// Seeded factors of mean 1 by a lognormal law; always 1 where nothing scatters.
class HostScatter {
 public:
  HostScatter(const Deployment& deployment, std::uint64_t seed, std::uint64_t stream)
      : variance_(deployment.fidelity == Fidelity::kIdeal
                      ? 0.0
                      : deployment.engine.host.scatter * deployment.engine.host.scatter),
        random_(Random(seed).fork(stream)) {}

  bool active() const { return variance_ > 0; }
  double draw() { return active() ? random_.normal() : 0.0; }  ///< a standard normal
  /// Of `n` times together, by a draw: a lognormal with the mean and the variance of their sum (Fenton 1960).
  double factor(double draw, std::int64_t n = 1) const {
    if (!active()) return 1.0;
    const double log_variance = std::log1p(variance_ / static_cast<double>(n));
    return std::exp(std::sqrt(log_variance) * draw - log_variance / 2);
  }

 private:
  double variance_;
  Random random_;
};

}  // namespace roofcast
