#include "sim/plan/power.h"

#include <cmath>

#include <doctest/doctest.h>

#include "sim/plan/system_spread.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

TEST_CASE("power: an H100 in decode draws two thirds of its range") {
  GpuSpec gpu;
  gpu.idle_power = {70.0}, gpu.board_power = {700.0};
  // MFU 0.02, MBU 0.60: 0.584 + 0.663 * sqrt(0.02) + 0.018 * 0.60 = 0.68856 of 630 W
  CHECK(power_of(gpu, {.compute = 0.02, .memory = 0.60}).value == doctest::Approx(70 + 630 * 0.68856).epsilon(1e-4));
}

TEST_CASE("power: never above the board's limit, and more work never draws less") {
  GpuSpec gpu;
  gpu.idle_power = {141.0}, gpu.board_power = {1000.0};
  double before = 0;
  for (double u = 0; u <= 1.0; u += 0.05) {
    const double watts = power_of(gpu, {.compute = u, .memory = 1 - u}).value;
    CHECK(watts <= 1000.0);
    const double more = power_of(gpu, {.compute = u, .memory = 1.0}).value;
    CHECK(more >= watts);
    CHECK(more >= before);
    before = more;
  }
  CHECK(power_of(gpu, {.compute = 0.9, .memory = 0.9}).value == 1000.0);
}

TEST_CASE("power: of a board whose limit is not known nothing is said") {
  GpuSpec gpu;
  gpu.idle_power = {70.0};
  CHECK(std::isnan(power_of(gpu, {.compute = 0.5, .memory = 0.5}).value));
  CHECK_FALSE(power_known(gpu));
}

TEST_CASE("power: the datasheet roofline has no interval") {
  Deployment d;
  d.fidelity = Fidelity::kIdeal;
  CHECK(power_spread(d).high == 0);
  d.fidelity = Fidelity::kCalibrated;
  CHECK(power_spread(d).high > 0);
  CHECK(power_spread(d).low < 0);
}

}  // namespace
}  // namespace roofcast
