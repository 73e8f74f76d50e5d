#include "sim/serve/host_scatter.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/sim/serve/fake.h"

using namespace roofcast;

namespace {

HostScatter scatter(double deviation, Fidelity fidelity = Fidelity::kCalibrated) {
  Deployment d;
  d.fidelity = fidelity;
  d.engine.host.scatter = deviation;
  return HostScatter(d, 7, 1);
}

}  // namespace

TEST_CASE("host scatter: the mean stays, and n times together scatter less by the root of n") {
  for (const std::int64_t n : {1, 9}) {
    HostScatter one = scatter(0.3);
    constexpr int kDraws = 20000;
    double sum = 0, squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double factor = one.factor(one.draw(), n);
      CHECK_FALSE(factor <= 0);
      sum += factor, squares += factor * factor;
    }
    const double mean = sum / kDraws, deviation = std::sqrt(squares / kDraws - mean * mean);
    const double expected = 0.3 / std::sqrt(static_cast<double>(n));
    CHECK(std::abs(mean - 1) < 4 * expected / std::sqrt(kDraws));
    CHECK(deviation == doctest::Approx(expected).epsilon(0.05));
  }
}

TEST_CASE("host scatter: none unless the engine has it, and none on the ideal roofline") {
  for (HostScatter none : {scatter(0), scatter(0.3, Fidelity::kIdeal)}) CHECK(none.factor(none.draw()) == 1.0);
}

TEST_CASE("host scatter: equal requests part, the same ones for the same seed, and means stay") {
  const auto run = [](double deviation, std::uint64_t seed) {
    const auto d = fake::deployment(1e6);
    d->engine.host.request_time = Seconds(2e-3);
    d->engine.host.scatter = deviation;
    fake::Requests source;
    for (int i = 0; i < 2000; ++i) source.add(0, 50, 11);
    ServingOptions options = fake::options({.host = 0.5e-3});
    options.seed = seed;
    return simulate(d, source, fake::closed_loop(4), options);
  };
  const ServingMetrics still = run(0, 1), scattered = run(0.3, 1), again = run(0.3, 1), other = run(0.3, 2);
  CHECK(run(0, 2).duration == still.duration);
  CHECK(scattered.duration == again.duration);
  CHECK(scattered.ttft_ms.mean() == again.ttft_ms.mean());
  CHECK(scattered.duration != other.duration);
  CHECK(scattered.itl_ms.percentile(99) > scattered.itl_ms.percentile(50));
  CHECK(scattered.duration.base() == doctest::Approx(still.duration.base()).epsilon(0.1));
  CHECK(scattered.tpot_ms.mean() == doctest::Approx(still.tpot_ms.mean()).epsilon(0.1));
}
