#pragma once
// Statistics of the errors of predictions against measurements, as the accuracy tables show them.

#include <cstddef>
#include <span>

namespace roofcast {

/// Errors are (predicted - measured) / measured, as fractions.
struct ErrorSummary {
  std::size_t rows = 0;
  double mape = 0;           ///< mean of |error|
  double median = 0;         ///< of |error|
  double p90 = 0;            ///< of |error|
  double bias = 0;           ///< mean of error
  double time_weighted = 0;  ///< sum |predicted - measured| / sum measured
};

/// Both spans use the same unit; every measured value is positive.
ErrorSummary summarize(std::span<const double> predicted, std::span<const double> measured);

/// Quantile by linear interpolation between order statistics. `values` need not be sorted; 0 if empty.
double quantile(std::span<const double> values, double fraction);

/// Half width of the 90 % interval of a normal distribution, in standard deviations.
inline constexpr double kNinetyPercent = 1.645;

/// The standard deviation whose 90 % interval holds nine of ten rows: the 0.9 quantile of |log(predicted / measured)|
/// divided by kNinetyPercent. 0 if empty.
double log_scatter(std::span<const double> predicted, std::span<const double> measured);

/// Spearman's rank correlation; ties get the mean of their ranks. NaN for fewer than two values, or if all values of
/// one side are equal.
double rank_correlation(std::span<const double> a, std::span<const double> b);

}  // namespace roofcast
