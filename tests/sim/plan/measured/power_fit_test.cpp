#include "sim/plan/measured/power_fit.h"

#include <doctest/doctest.h>

#include <random>

namespace roofcast {
namespace {

/// Servers that draw what `curve` says, with a relative error of `noise`.
std::vector<PowerSample> servers(const PowerCurve& curve, double noise) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> share(0.0, 1.0);
  std::normal_distribution<double> error(0.0, noise);
  std::vector<PowerSample> samples;
  for (const auto& [gpu, idle, board] : {std::tuple{"a", 70.0, 700.0}, {"b", 140.0, 1000.0}}) {
    for (int i = 0; i < 120; ++i) {
      PowerSample s{.model = "m" + std::to_string(i % 6),
                    .gpu = gpu,
                    .idle = {idle},
                    .board = {board},
                    .measured = {},
                    .utilization = {}};
      s.utilization = {.compute = 0.25 * share(random),
                       .memory = 0.6 * share(random)};  // the sum stays below the limit
      s.busy_share = 0.7 + 0.3 * share(random);
      s.measured = {mean_power(s, curve).value * (1 + error(random))};
      samples.push_back(s);
    }
  }
  return samples;
}

TEST_CASE("power fit: made-up servers give their curve back") {
  const PowerCurve truth{.static_share = 0.4, .compute_share = 0.6, .memory_share = 0.3};
  const PowerCurve exact = fit_power(servers(truth, 0.0));
  CHECK(exact.static_share == doctest::Approx(0.4).epsilon(1e-6));
  CHECK(exact.compute_share == doctest::Approx(0.6).epsilon(1e-6));
  CHECK(exact.memory_share == doctest::Approx(0.3).epsilon(1e-6));
  const PowerCurve noisy = fit_power(servers(truth, 0.05));
  CHECK(noisy.static_share == doctest::Approx(0.4).epsilon(0.1));
  CHECK(noisy.compute_share == doctest::Approx(0.6).epsilon(0.15));
  CHECK(noisy.memory_share == doctest::Approx(0.3).epsilon(0.2));
}

TEST_CASE("power fit: a share that would be negative is zero") {
  const PowerCurve falls{.static_share = 0.6, .compute_share = 0.5, .memory_share = -0.2};
  const PowerCurve fitted = fit_power(servers(falls, 0.0));
  CHECK(fitted.memory_share == 0.0);
  CHECK(fitted.static_share > 0.4);
}

TEST_CASE("power fit: errors on what was left out are those of a curve that did not see it") {
  std::vector<PowerSample> samples = servers({.static_share = 0.4, .compute_share = 0.6, .memory_share = 0.3}, 0.0);
  for (PowerSample& s : samples) {
    if (s.gpu == "b") s.measured.value *= 0.8;
  }
  const std::vector<PowerErrors> seen = power_errors(samples, LeftOut::kModel);
  const std::vector<PowerErrors> unseen = power_errors(samples, LeftOut::kGpu);
  REQUIRE(seen.size() == 3);  // a, b, all
  REQUIRE(unseen.size() == 3);
  CHECK(unseen[1].name == "b");
  CHECK(unseen[1].errors.median == doctest::Approx(0.25).epsilon(1e-3));  // 1 / 0.8 - 1: fitted to "a" alone
  CHECK(seen[1].errors.median < 0.2);
  CHECK(unseen[1].spread.low == doctest::Approx(std::log(0.8)).epsilon(1e-3));
}

TEST_CASE("power fit: a table without power is refused") {
  const CsvTable table = CsvTable::parse("hf_id,median_itl_ms\na,1\n", "runs.csv");
  CHECK_THROWS_WITH_AS(power_samples({}, table, {}), doctest::Contains("'power_w' and 'median_itl_ms'"), ConfigError);
}

}  // namespace
}  // namespace roofcast
