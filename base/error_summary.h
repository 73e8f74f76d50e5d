#pragma once
// How far predictions stand from measurements, in the words of the accuracy tables.

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

/// Both in the same unit; measured > 0.
ErrorSummary summarize(std::span<const double> predicted, std::span<const double> measured);

/// Linear interpolation between order statistics; `values` need not be sorted; 0 when empty.
double quantile(std::span<const double> values, double fraction);

/// Half width of the 90 % interval of a normal distribution, in standard deviations.
inline constexpr double kNinetyPercent = 1.645;

/// Half width of the interval that holds nine of ten rows, as a standard deviation: the 0.9 quantile of
/// |log(predicted / measured)| over kNinetyPercent. 0 when empty.
double log_scatter(std::span<const double> predicted, std::span<const double> measured);

/// Spearman's rank correlation; equal values share the mean of their ranks. NaN where nothing can be ranked: fewer than
/// two values, or all of one side equal.
double rank_correlation(std::span<const double> a, std::span<const double> b);

}  // namespace roofcast
