#include "sim/plan/lectures/distillation.h"

#include <array>

#include "lecture.h"

using namespace lecture;

namespace {

constexpr std::array kTeacher{10.0, 2.0, 1.0}, kStudent{5.0, 1.5, 1.0};

void check(const std::vector<double>& got, const std::array<double, 3>& printed, double precision) {
  for (std::size_t i = 0; i < 3; ++i) CHECK(std::abs(got[i] - printed[i]) < precision);
}

}  // namespace

TEST_CASE("teacher 10, 2, 1 at T = 1: almost no dark knowledge") {
  check(softened(kTeacher, 1), {0.999, 0.0003, 0.0001}, 0.0006);
}

TEST_CASE("at T = 4: teacher .81 .11 .08, student .56 .23 .21 (a lecture: .88 .08 .04 and .68 .17 .15)") {
  // exp(2.5), exp(0.5), exp(0.25) = 12.18, 1.649, 1.284 of 15.12
  check(softened(kTeacher, 4), {0.806, 0.109, 0.085}, 0.0006);
  check(softened(kStudent, 4), {0.560, 0.234, 0.206}, 0.0006);
  // dog over car: e^(1/4) = 1.28, not the 2 that a lecture reads off its figures
  CHECK(softened(kTeacher, 4)[1] / softened(kTeacher, 4)[2] == doctest::Approx(std::exp(0.25)));
}

TEST_CASE("the loss: alpha CE + (1 - alpha) T^2 KL") {
  const double hard = -std::log(softened(kStudent, 1)[0]);
  const double soft = kl_divergence(softened(kTeacher, 4), softened(kStudent, 4));
  CHECK(distillation_loss(kTeacher, kStudent, 0, 4, 1.0) == doctest::Approx(hard));
  CHECK(distillation_loss(kTeacher, kStudent, 0, 4, 0.0) == doctest::Approx(16 * soft));
  CHECK(distillation_loss(kTeacher, kTeacher, 0, 4, 0.0) == 0.0);
  // 0.806 ln(0.806/0.560) + 0.109 ln(0.109/0.234) + 0.085 ln(0.085/0.206) = 0.135
  CHECK(soft == within(0.135));
}
