#include "base/normal.h"

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>

using namespace roofcast;

TEST_CASE("normal quantile: known values, and the inverse of the distribution function far into both tails") {
  CHECK(normal_quantile(0.5) == doctest::Approx(0.0).epsilon(1e-14));
  CHECK(normal_quantile(0.975) == doctest::Approx(1.959963984540054).epsilon(1e-14));
  CHECK(normal_quantile(1e-6) == doctest::Approx(-4.753424308822899).epsilon(1e-13));
  for (const double p : {1e-12, 1e-9, 0.01, 0.3, 0.5, 0.7, 0.99, 1 - 1e-9}) {
    INFO(p);
    CHECK(0.5 * std::erfc(-normal_quantile(p) / std::sqrt(2.0)) == doctest::Approx(p).epsilon(1e-12));
  }
}
