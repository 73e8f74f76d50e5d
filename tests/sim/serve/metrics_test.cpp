// Distributions of what clients see.
#include <doctest/doctest.h>

#include <cmath>

#include "base/random.h"
#include "sim/serve/collector.h"
#include "sim/serve/metrics.h"

using namespace roofcast;

TEST_CASE("metrics: percentiles are linear between order statistics, as in numpy") {
  Distribution d;
  for (const double value : {40.0, 10.0, 30.0, 20.0}) d.add(value);
  // rank = p/100 * 3: p50 -> 1.5, half way from 20 to 30; p90 -> 2.7; p99 -> 2.97
  CHECK(d.percentile(0) == 10.0);
  CHECK(d.percentile(50) == 25.0);
  CHECK(d.percentile(90) == doctest::Approx(37.0));
  CHECK(d.percentile(99) == doctest::Approx(39.7));
  CHECK(d.percentile(100) == 40.0);
  CHECK(d.count() == 4.0);
  CHECK(d.mean() == 25.0);
  CHECK(d.stddev() == doctest::Approx(std::sqrt(125.0)));  // (15^2 + 5^2 + 5^2 + 15^2) / 4
  CHECK(d.min() == 10.0);
  CHECK(d.max() == 40.0);
  d.add(5.0);  // after a percentile was asked for
  CHECK(d.percentile(50) == 20.0);
}

TEST_CASE("metrics: a weight of n is the same as n values") {
  Distribution weighted, one_by_one;
  weighted.add(7.0, 98.0);
  weighted.add(50.0);
  weighted.add(90.0);
  for (int i = 0; i < 98; ++i) one_by_one.add(7.0);
  one_by_one.add(50.0);
  one_by_one.add(90.0);
  // 100 values, rank of p99 = 98.01: 50 + 0.01 * 40 = 50.4; rank of p98 = 97.02: 7 + 0.02 * 43 = 7.86
  CHECK(weighted.percentile(99) == doctest::Approx(50.4));
  CHECK(weighted.percentile(98) == doctest::Approx(7.86));
  for (const double p : {0.0, 10.0, 50.0, 97.0, 99.5, 100.0}) {
    CHECK(weighted.percentile(p) == doctest::Approx(one_by_one.percentile(p)));
  }
  CHECK(weighted.mean() == doctest::Approx(8.26));  // (98 * 7 + 50 + 90) / 100
  CHECK(weighted.stddev() == doctest::Approx(one_by_one.stddev()));
}

TEST_CASE("metrics: one value, no value") {
  Distribution d;
  CHECK(d.percentile(99) == 0.0);
  CHECK(d.mean() == 0.0);
  CHECK(d.stddev() == 0.0);
  d.add(3.0);
  CHECK(d.percentile(1) == 3.0);
  CHECK(d.percentile(99) == 3.0);
  d.add(4.0, 0.0);  // no weight: never seen
  CHECK(d.count() == 1.0);
  CHECK(d.max() == 3.0);
  CHECK_THROWS(d.add(-1.0));
  CHECK_THROWS(d.add(std::nan("")));
}

TEST_CASE("metrics: past 65536 values a histogram keeps percentiles within 0.1 %") {
  Distribution d;
  d.add(0.0);
  for (int i = 1; i <= 200000; ++i) d.add(i * 0.01);  // 0, 0.01 .. 2000, evenly
  CHECK(d.count() == 200001.0);
  CHECK(d.mean() == doctest::Approx(1000.0));
  CHECK(d.min() == 0.0);
  CHECK(d.max() == 2000.0);
  for (const double p : {1.0, 10.0, 50.0, 90.0, 99.0, 99.9}) {
    CHECK(d.percentile(p) == doctest::Approx(20.0 * p).epsilon(0.001));
  }
  CHECK(d.percentile(0) == 0.0);
  CHECK(d.percentile(100) == doctest::Approx(2000.0).epsilon(0.001));
}

TEST_CASE("metrics: percentiles never fall as p grows") {
  Random random(5);
  Distribution few, many;
  for (int i = 0; i < 1000; ++i) few.add(random.lognormal(3.0, 2.0), 1.0 + i % 5);
  for (int i = 0; i < 100000; ++i) many.add(random.lognormal(3.0, 2.0));
  for (int p = 1; p <= 100; ++p) {
    CHECK(few.percentile(p) >= few.percentile(p - 1));
    CHECK(many.percentile(p) >= many.percentile(p - 1));
  }
}

TEST_CASE("metrics: merged parts equal the whole") {
  Random random(11);
  for (const int count : {100, 50000}) {  // exact, and a merge that spills
    Distribution whole, left, right, empty;
    for (int i = 0; i < count; ++i) {
      const double value = random.exponential(20.0);
      whole.add(value);
      (i % 3 == 0 ? left : right).add(value);
      left.add(value + 100.0, 2.0);
      whole.add(value + 100.0, 2.0);
    }
    left.merge(right);
    left.merge(empty);
    CHECK(left.count() == whole.count());
    CHECK(left.mean() == doctest::Approx(whole.mean()));
    CHECK(left.stddev() == doctest::Approx(whole.stddev()));
    CHECK(left.min() == whole.min());
    CHECK(left.max() == whole.max());
    for (const double p : {1.0, 50.0, 99.0})
      CHECK(left.percentile(p) == doctest::Approx(whole.percentile(p)).epsilon(0.001));
    empty.merge(left);
    CHECK(empty.count() == left.count());
  }
}

TEST_CASE("metrics: TPOT leaves the first token out") {
  RequestRecord record;
  record.ttft = Seconds(0.5);
  record.e2el = Seconds(2.5);
  record.output_tokens = 101;
  CHECK(record.tpot().in(kMillisecond) == doctest::Approx(20.0));  // (2.5 - 0.5) s / 100
  record.output_tokens = 1;
  CHECK(record.tpot() == Seconds(0.0));
}

TEST_CASE("metrics: work after the last answer counts only if another request is served") {
  Collector collector({}, nullptr);
  const auto work = [&](std::int64_t from, std::int64_t to, double flops) {
    collector.work(SimTime(from), SimTime(to), {.flops = flops}, false);
  };
  const auto answer = [&](std::int64_t at) {
    collector.replied(SimTime(at));
    collector.request({});
  };
  collector.begin(SimTime(0));
  collector.sent();
  work(0, 10, 10);
  answer(10);
  work(10, 30, 20);  // of requests that are not counted
  collector.sent();
  collector.failed(0);  // refused: the measured time still ends at 10
  work(30, 40, 5);
  CHECK(collector.metrics().flops == 10);
  collector.sent();
  work(40, 50, 1);
  answer(50);
  CHECK(collector.metrics().flops == 36);
}
