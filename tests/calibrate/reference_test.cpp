#include "calibrate/reference.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "calibrate/random_data.h"

using namespace roofcast;
using namespace roofcast::calibrate;

namespace {
Element of(std::vector<double> values) {
  return [values](std::uint64_t i) { return values[i]; };
}
}  // namespace

TEST_CASE("reference: attention of one query over three keys") {
  // d = 4, so scores are q k / 2: with q = (2 0 0 0) and first elements 0, ln 2, ln 4 they are 0, ln 2, ln 4;
  // weights 1, 2, 4 over 7
  const double a = std::log(2.0), b = std::log(4.0);
  const std::vector<double> out = reference_attention(4, 3, of({2, 0, 0, 0}), of({0, 9, 9, 9, a, 9, 9, 9, b, 9, 9, 9}),
                                                      of({7, 0, 1, 1, 0, 7, 1, 2, 0, 0, 1, 4}));
  CHECK(out[0] == doctest::Approx(1.0));  // 7 x 1 / 7
  CHECK(out[1] == doctest::Approx(2.0));  // 7 x 2 / 7
  CHECK(out[2] == doctest::Approx(1.0));  // weights add up to one
  CHECK(out[3] == doctest::Approx((1 + 4 + 16) / 7.0));
}

TEST_CASE("reference: dot product, norm, rope, activation") {
  CHECK(reference_dot(3, of({1, 2, 3}), of({4, 5, 6})) == 32.0);
  // mean of squares of (3, 4) is 12.5
  const std::vector<double> norm = reference_rmsnorm(std::vector<double>{3, 4}, std::vector<double>{1, 2}, 0.0);
  CHECK(norm[0] == doctest::Approx(3 / std::sqrt(12.5)));
  CHECK(norm[1] == doctest::Approx(8 / std::sqrt(12.5)));
  // pairs (0, 2) and (1, 3): the first turned by the position itself, the second by position / base^(1/2)
  const double quarter = std::acos(-1.0) / 2;
  const std::vector<double> turned = reference_rope(std::vector<double>{1, 1, 0, 0}, quarter, 4.0);
  CHECK(turned[0] == doctest::Approx(0.0).epsilon(1e-12));
  CHECK(turned[2] == doctest::Approx(1.0));
  CHECK(turned[1] == doctest::Approx(std::cos(quarter / 2)));
  CHECK(turned[3] == doctest::Approx(std::sin(quarter / 2)));
  CHECK(reference_silu(0.0) == 0.0);
  CHECK(reference_silu(std::log(3.0)) == doctest::Approx(0.75 * std::log(3.0)));  // sigmoid(ln 3) = 3/4
}

TEST_CASE("reference: number formats by their bits") {
  CHECK(bf16_value(0x3FC0) == 1.5);
  CHECK(std::isnan(bf16_value(0xFFFF)));  // what poison leaves
  CHECK(half_value(0x3C00) == 1.0);
  CHECK(half_value(0xC500) == -5.0);
  CHECK(half_value(0x0001) == std::ldexp(1.0, -24));
  CHECK(std::isnan(half_value(0xFFFF)));
  CHECK(e4m3_value(0x38) == 1.0f);
  CHECK(e4m3_value(0xC4) == -3.0f);  // exponent 8, mantissa 4: 2 x 1.5
  CHECK(nibble_of(0x87654321u, 2) == 3);
}

TEST_CASE("reference: random elements are spread, exact in their formats and never depend on the buffer") {
  std::set<int> bytes;
  double sum = 0, squares = 0;
  constexpr int n = 20000;
  for (std::uint64_t i = 0; i < n; ++i) {
    bytes.insert(random_byte(1, i));
    const auto value = static_cast<double>(random_unit(1, i));
    sum += value;
    squares += value * value;
    const auto fp8 = static_cast<double>(std::abs(e4m3_value(random_e4m3(1, i))));
    CHECK_MESSAGE((fp8 >= 0.0625 && fp8 < 1.0), fp8);
  }
  CHECK(bytes.size() == 256);
  CHECK(std::abs(sum / n) < 0.02);
  CHECK(squares / n == doctest::Approx(1.0 / 3).epsilon(0.03));  // uniform in [-1, 1)
  CHECK(random_bits(1, 5) != random_bits(2, 5));
  CHECK(random_bits(1, 5) != random_bits(1, std::uint64_t{5} << 32));
}

TEST_CASE("reference: what differs is found, poison always, rounding never") {
  CHECK(differs(std::vector<double>{1.0, 2.0}, std::vector<double>{1.0, 2.0}, 1e-9, 30) == "");
  CHECK(differs(std::vector<double>{1.0, 2.004}, std::vector<double>{1.0, 2.0}, 0.0, 8) == "");  // 2 / 256 is allowed
  CHECK(differs(std::vector<double>{1.0, 2.01}, std::vector<double>{1.0, 2.0}, 0.0, 8) ==
        "element 1 of the sample is 2.01, expected 2 within 0.0078");
  CHECK(differs(std::vector<double>{std::nan("")}, std::vector<double>{0.0}, 1.0, 1) != "");
  CHECK(differs(std::vector<double>{1.0}, std::vector<double>{}, 1.0, 1) == "1 elements, expected 0");
  const auto places = sample_places(1000, 8, 1);
  CHECK(places.size() == 8);
  CHECK(places[1] == 999);
  CHECK(sample_places(3, 8, 1) == std::vector<std::uint64_t>{0, 1, 2});
}
