#include "base/error_summary.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace roofcast {

double quantile(std::span<const double> values, double fraction) {
  if (values.empty()) return 0.0;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double position = std::clamp(fraction, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double share = position - static_cast<double>(below);
  return sorted[below] * (1.0 - share) + sorted[above] * share;
}

ErrorSummary summarize(std::span<const double> predicted, std::span<const double> measured) {
  SIM_CHECK(predicted.size() == measured.size(), "one prediction a measurement");
  ErrorSummary out;
  out.rows = predicted.size();
  if (predicted.empty()) return out;
  std::vector<double> absolute;
  absolute.reserve(predicted.size());
  double distance = 0, total = 0, absolute_sum = 0, signed_sum = 0;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    const double error = (predicted[i] - measured[i]) / measured[i];
    absolute.push_back(std::abs(error));
    absolute_sum += std::abs(error);
    signed_sum += error;
    distance += std::abs(predicted[i] - measured[i]);
    total += measured[i];
  }
  const auto count = static_cast<double>(predicted.size());
  out.mape = absolute_sum / count;
  out.bias = signed_sum / count;
  out.median = quantile(absolute, 0.5);
  out.p90 = quantile(absolute, 0.9);
  out.time_weighted = distance / total;
  return out;
}

double log_scatter(std::span<const double> predicted, std::span<const double> measured) {
  std::vector<double> ratios;
  ratios.reserve(predicted.size());
  for (std::size_t i = 0; i < predicted.size(); ++i) ratios.push_back(std::abs(std::log(predicted[i] / measured[i])));
  return quantile(ratios, 0.9) / kNinetyPercent;
}

}  // namespace roofcast
