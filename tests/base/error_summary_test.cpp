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

}  // namespace roofcast
