// Rounding against a search over every level, and its bytes against bits that are written one after another.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "lecture.h"
#include "sim/model/recipes.h"
#include "sim/model/weights.h"
#include "sim/plan/lectures/rounding.h"
#include "tests/scenarios.h"

using namespace lecture;

namespace {

/// The level nearest to `w`, of all that `bits` bits and a scale can stand for; of two equally near ones the larger in
/// magnitude.
int nearest_level(double w, double scale, int bits) {
  int best = 0;
  double distance = std::numeric_limits<double>::infinity();
  for (int level = -(1 << (bits - 1)) + 1; level < 1 << (bits - 1); ++level) {
    const double off = std::abs(w - level * scale);
    const bool tie = std::abs(off - distance) <= 1e-12 * scale;
    if (tie ? std::abs(level) > std::abs(best) : off < distance) best = level, distance = off;
  }
  return best;
}

std::size_t bits_written(std::size_t weights, int bits, int scale_bits) {
  std::vector<bool> file;
  for (std::size_t i = 0; i < weights; ++i) file.insert(file.end(), static_cast<std::size_t>(bits), true);
  file.insert(file.end(), static_cast<std::size_t>(scale_bits), true);
  return file.size();
}

}  // namespace

TEST_CASE("quantization: random groups equal a search over all levels") {
  Random random(8);
  const int n = scenarios(400);
  for (int i = 0; i < n; ++i) {
    const int bits = static_cast<int>(random.uniform_integer(2, 9));
    const auto length = static_cast<std::size_t>(random.uniform_integer(0, 40));
    std::vector<double> weights;
    const bool zeros = random.uniform() < 0.1;
    for (std::size_t k = 0; k < length; ++k) {
      const double u = random.uniform();
      weights.push_back(zeros      ? 0.0
                        : u < 0.1  ? 0.0
                        : u > 0.95 ? 1000 * (random.uniform() - 0.5)
                                   : random.uniform() - 0.5);
    }
    const QuantizedGroup group = quantize_absmax(weights, bits);
    double largest = 0;
    for (const double w : weights) largest = std::max(largest, std::abs(w));
    const double scale = largest / ((1 << (bits - 1)) - 1);
    INFO(i, " bits ", bits, " of ", length);
    REQUIRE(group.integers.size() == length);
    CHECK(group.scale == doctest::Approx(scale));
    double worst = 0;
    for (std::size_t k = 0; k < length; ++k) {
      const int level = largest > 0 ? nearest_level(weights[k], scale, bits) : 0;
      REQUIRE(group.integers[k] == level);
      worst = std::max(worst, std::abs(weights[k] - level * scale));
    }
    CHECK(largest_error(weights, group) == doctest::Approx(worst));
    CHECK(worst <= scale / 2 * (1 + 1e-9));
    CHECK(group.bytes(32).base() * 8 == static_cast<double>(bits_written(length, bits, 32)));
  }
}

TEST_CASE("2:4: random matrices take as many bits as their halves and the places of these") {
  Random random(9);
  for (int i = 0; i < 100; ++i) {
    const std::vector<Dtype> formats{Dtype::kBf16, Dtype::kFp8, Dtype::kInt8, Dtype::kInt4};
    const Dtype format = formats[static_cast<std::size_t>(random.uniform_integer(0, 3))];
    const auto fours = static_cast<std::size_t>(random.uniform_integer(1, 64));
    std::size_t bits = 0;
    for (std::size_t four = 0; four < fours; ++four) {
      for (int kept = 0; kept < 2; ++kept) bits += static_cast<std::size_t>(element_bits(format)) + 2;
    }
    Precision p;
    set_weights(p, format);
    p.two_of_four = true;
    CHECK(static_cast<double>(4 * fours) * bytes_per_weight(WeightRole::kFeedForward, p) * 8 ==
          static_cast<double>(bits));
    CHECK(bytes_per_weight(WeightRole::kExpert, p) == element_bits(format) / 8);  // their products have no such kernels
    CHECK(bytes_per_weight(WeightRole::kHead, p) == 2.0);
  }
}
