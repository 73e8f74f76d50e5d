#include "base/error_summary.h"

#include <array>
#include <cmath>

#include <doctest/doctest.h>

namespace roofcast {

TEST_CASE("rank correlation: equal values share their rank, in whatever order they come") {
  // Ranks 0, 1.5, 1.5, 3 against 0, 1, 2, 3: sum of products 4.5, of squares 4.5 and 5.
  const std::array<double, 4> a{10, 20, 20, 30}, b{1, 2, 3, 4}, swapped{1, 3, 2, 4};
  CHECK(rank_correlation(a, b) == doctest::Approx(4.5 / std::sqrt(4.5 * 5.0)));
  CHECK(rank_correlation(a, swapped) == rank_correlation(a, b));
}

TEST_CASE("rank correlation: opposite orders are -1, and what has no order has none") {
  const std::array<double, 2> rising{1, 2}, falling{5, 3}, flat{4, 4};
  CHECK(rank_correlation(rising, falling) == doctest::Approx(-1));
  CHECK(std::isnan(rank_correlation(rising, flat)));
  CHECK(std::isnan(rank_correlation(std::span(rising).first(1), std::span(falling).first(1))));
}

TEST_CASE("error summary: errors of +10, -10 and +100 %") {
  const std::array<double, 3> predicted{110, 180, 100}, measured{100, 200, 50};
  const ErrorSummary s = summarize(predicted, measured);
  CHECK(s.rows == 3);
  CHECK(s.mape == doctest::Approx(0.4));      // 1.2 / 3
  CHECK(s.bias == doctest::Approx(1.0 / 3));  // (0.1 - 0.1 + 1) / 3
  CHECK(s.median == doctest::Approx(0.1));
  CHECK(s.p90 == doctest::Approx(0.82));  // 0.9 of 2 steps: a fifth of the way back from 1 to 0.1
  CHECK(s.time_weighted == doctest::Approx(80.0 / 350));
  CHECK(summarize({}, {}).rows == 0);
  CHECK(summarize({}, {}).mape == 0.0);
}

TEST_CASE("quantile: between order statistics, whatever the order, and within 0 and 1") {
  const std::array<double, 3> values{3, 1, 2};
  CHECK(quantile(values, 0.5) == 2.0);
  CHECK(quantile(values, 0.25) == 1.5);
  CHECK(quantile(values, -1) == 1.0);
  CHECK(quantile(values, 2) == 3.0);
  CHECK(quantile({}, 0.5) == 0.0);
}

TEST_CASE("log scatter: a factor too high weighs as much as one too low") {
  // |log| 0.1 and 0.2: their 0.9 quantile is 0.19
  const std::array<double, 2> predicted{std::exp(0.1), std::exp(-0.2)}, measured{1, 1};
  CHECK(log_scatter(predicted, measured) == doctest::Approx(0.19 / kNinetyPercent));
  CHECK(log_scatter({}, {}) == 0.0);
}

}  // namespace roofcast
