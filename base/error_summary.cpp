#include "base/error_summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/error.h"

namespace roofcast {
namespace {

std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> rank(values.size());
  for (std::size_t first = 0, end = 0; first < order.size(); first = end) {
    end = first + 1;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    for (std::size_t i = first; i < end; ++i) rank[order[i]] = static_cast<double>(first + end - 1) / 2;
  }
  return rank;
}

}  // namespace

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
  SIM_CHECK(predicted.size() == measured.size(), "one prediction per measurement");
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

double rank_correlation(std::span<const double> a, std::span<const double> b) {
  SIM_CHECK(a.size() == b.size(), "pairs of values");
  const std::vector<double> rank_a = ranks(a), rank_b = ranks(b);
  const double mean = (static_cast<double>(a.size()) - 1) / 2;
  double together = 0, spread_a = 0, spread_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    together += (rank_a[i] - mean) * (rank_b[i] - mean);
    spread_a += (rank_a[i] - mean) * (rank_a[i] - mean);
    spread_b += (rank_b[i] - mean) * (rank_b[i] - mean);
  }
  if (spread_a == 0 || spread_b == 0) return std::numeric_limits<double>::quiet_NaN();
  return together / std::sqrt(spread_a * spread_b);
}

}  // namespace roofcast
