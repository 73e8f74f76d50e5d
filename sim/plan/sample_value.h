#pragma once
// Statistics of latencies that may have no samples.

#include <limits>

#include "sim/serve/metrics.h"

namespace roofcast {

/// A statistic of `samples`; NaN if there are none (null in JSON, an empty cell in CSV).
inline double sample_value(const Distribution& samples, double statistic) {
  return samples.count() > 0 ? statistic : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace roofcast
