#include "sim/plan/search/confidence.h"

#include <algorithm>
#include <cmath>

namespace roofcast {
namespace {
constexpr double kTwoSided95 = 1.959963985;
}

Seconds upper_confidence(const Objective& o, const ServingMetrics& metrics) {
  const Distribution& d = distribution_of(o, metrics);
  const double n = std::max(1.0, static_cast<double>(requests_of(o, metrics)));
  if (o.percentile < 0) return (d.mean() + kTwoSided95 * d.stddev() / std::sqrt(n)) * kMillisecond;
  return d.percentile(100.0 * upper_rank(o.percentile, n)) * kMillisecond;
}

double upper_rank(double percentile, double n) {
  const double p = percentile / 100.0;
  return std::min(1.0, p + kTwoSided95 * std::sqrt(p * (1 - p) / n));
}

double lower_confidence(double share, double requests) {
  const double z2 = kTwoSided95 * kTwoSided95, n = requests;
  const double spread = kTwoSided95 * std::sqrt(share * (1 - share) / n + z2 / (4 * n * n));
  return std::max(0.0, (share + z2 / (2 * n) - spread) / (1 + z2 / n));
}

std::int64_t requests_needed(const std::vector<Objective>& objectives, double goodput) {
  double needed = std::max(400.0, std::ceil(20.0 / (1.0 - goodput) - 1e-6));
  for (const Objective& o : objectives) {
    if (o.percentile >= 0) needed = std::max(needed, std::ceil(20.0 / (1.0 - o.percentile / 100.0) - 1e-6));
  }
  return static_cast<std::int64_t>(std::min(needed, 1e6));
}

}  // namespace roofcast
