#include "calibrate/harness.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "calibrate/cpu_backend.h"
#include "calibrate/grid.h"
#include "tests/calibrate/made_up_backend.h"

using namespace roofcast;
using namespace roofcast::calibrate;

namespace {

Point point(std::int64_t m) { return {.op = "gemm", .dtype = "bf16", .shape = {{"m", m}, {"n", 64}, {"k", 64}}}; }

Record measured(MadeUpDevice device, const HarnessOptions& options = {}, Seconds allowance = 10.0 * kSecond) {
  MadeUpBackend backend(std::move(device));
  return measure_point(backend, point(1), allowance, options.warm_up, options).value();
}

struct Run {
  MeasureSummary summary;
  std::vector<Record> records;
};
Run run(MadeUpBackend& backend, const std::vector<Point>& points, const HarnessOptions& options = {},
        const std::set<std::string>& found = {}) {
  Run out;
  out.summary = measure(backend, points, found, options, [&](const Record& r) { out.records.push_back(r); }, {});
  return out;
}

}  // namespace

TEST_CASE("harness: the mean and the noise of a made-up kernel come back") {
  MadeUpDevice device;
  device.time = [](const Point&) { return 50.0 * kMicrosecond; };
  device.noise = 0.02;
  const Record record = measured(device);
  const Statistics s = statistics_of(record.samples_us);
  CHECK(record.stop == Stop::kConverged);
  CHECK(record.repeats >= 20);  // 1 ms over the quickest of some calls, up to 8 % under 50 us
  CHECK(record.repeats <= 22);
  // the median is known to 0.5 % when it stops: within four of those
  CHECK(s.median_us == doctest::Approx(50.0).epsilon(4 * 0.005));
  CHECK(s.noise == doctest::Approx(0.02).epsilon(0.4));
  // 1.2533 x 0.02 / sqrt(n) < 0.005 from n = 25 on; the noise seen may be a little smaller than it is
  CHECK(record.samples_us.size() >= 10);
  CHECK(record.samples_us.size() < 60);
  CHECK(s.standard_error < 0.005);
}

TEST_CASE("harness: a kernel without noise stops at the least number of samples") {
  const Record record = measured({});
  CHECK(record.stop == Stop::kConverged);
  CHECK(record.samples_us.size() == 20);  // 20 ms of 1 ms: drift would show
  CHECK(record.before.sm_clock_mhz == 1980);
}

TEST_CASE("harness: noise too large for the precision ends by samples or by time") {
  MadeUpDevice device;
  device.noise = 0.3;  // 1.2533 x 0.3 / sqrt(300) = 2.2 %
  CHECK(measured(device).stop == Stop::kSamples);
  CHECK(measured(device).samples_us.size() == 300);
  // 10 us x 100 to 300 calls a sample: 100 ms hold 30 to 100
  const Record short_of_time = measured(device, {}, 100.0 * kMillisecond);
  CHECK(short_of_time.stop == Stop::kTime);
  CHECK(short_of_time.samples_us.size() > 20);
  CHECK(short_of_time.samples_us.size() < 120);
}

TEST_CASE("harness: throttled samples are marked and count") {
  MadeUpDevice device;
  device.throttled = [](int sample) { return sample % 4 == 3; };  // a quarter of them, 30 % slower
  const Record record = measured(device);
  CHECK(record.throttled.size() > record.samples_us.size() / 5);
  CHECK(record.throttled.size() < record.samples_us.size() / 3);
  CHECK(statistics_of(record.samples_us).median_us == doctest::Approx(10.0).epsilon(0.02));
  CHECK(!is_hot(record));
  device.throttled = [](int) { return true; };
  const Record hot = measured(device);
  CHECK(hot.throttled.size() == hot.samples_us.size());
  CHECK(statistics_of(hot.samples_us).median_us == doctest::Approx(13.0).epsilon(0.02));
  CHECK(is_hot(hot));
}

TEST_CASE("harness: a point under load shows the clock that the power limit leaves, a cool one does not") {
  // 40 ms of work bring the clock down by a quarter. A cool point is over within 5 ms of warm-up and 20 of samples.
  MadeUpDevice device;
  device.heats_in = 40.0 * kMillisecond;
  Point loaded = point(1);
  loaded.shape.emplace_back("load_ms", 100);
  MadeUpBackend backend(device);
  const Run out = run(backend, {point(1), loaded, point(2)}, {.first_warm_up = 5e-3 * kSecond});
  REQUIRE(out.records.size() == 3);
  CHECK(statistics_of(out.records[0].samples_us).median_us == doctest::Approx(10.0));
  CHECK(out.records[0].throttled.empty());
  CHECK(out.records[0].during.sm_clock_mhz == 1980);
  CHECK(statistics_of(out.records[1].samples_us).median_us == doctest::Approx(12.5));
  CHECK(out.records[1].throttled.size() == out.records[1].samples_us.size());
  CHECK(out.records[1].during.sm_clock_mhz == 1584);
  CHECK(out.summary.hot == 1);
  // the device idles until no limit shows: the next point is cool again
  CHECK(out.records[2].before.sm_clock_mhz == 1980);
  CHECK(out.records[2].throttled.empty());
  CHECK(statistics_of(out.records[2].samples_us).median_us == doctest::Approx(10.0));
}

TEST_CASE("harness: the state during a point is that of its last sample, not of the rest after it") {
  // Each sample of 1 ms heats the device up, a rest of three cools it down: only right after a sample the clock is low.
  MadeUpDevice device;
  device.heats_in = 0.5 * kMillisecond;
  const Record record = measured(device);
  CHECK(record.during.sm_clock_mhz == 1584);
  CHECK(statistics_of(record.samples_us).median_us == doctest::Approx(10.0));
}

TEST_CASE("harness: a cool point rests after each sample, so that no power limit is reached") {
  // 10 ms of work heat it up, idling cools it twice as fast: with rests of three samples it never gets warm
  MadeUpDevice device;
  device.heats_in = 10.0 * kMillisecond;
  MadeUpBackend backend(device);
  const Run out = run(backend, {point(1)}, {.warm_up = 1e-3 * kSecond, .first_warm_up = 1e-3 * kSecond});
  REQUIRE(out.records.size() == 1);
  CHECK(out.records[0].throttled.empty());
  CHECK(out.records[0].samples_us.size() == 20);  // 20 ms at work, the rests apart
  CHECK(statistics_of(out.records[0].samples_us).median_us == doctest::Approx(10.0));
  // without rests it is held down before the end
  MadeUpBackend hurried(device);
  const Run hot = run(hurried, {point(1)}, {.warm_up = 1e-3 * kSecond, .first_warm_up = 1e-3 * kSecond, .rest = 0.0});
  CHECK(!hot.records[0].throttled.empty());
}

TEST_CASE("harness: a limit that is read late is counted to the point that reached it") {
  MadeUpDevice device;
  device.heats_in = 20.0 * kMillisecond;
  device.flag_lag = 15.0 * kMillisecond;
  MadeUpBackend backend(device);
  HarnessOptions options;
  options.first_warm_up = options.warm_up;
  options.rest = 0.0;
  const Run out = run(backend, {point(1), point(2)}, options);
  REQUIRE(out.records.size() == 2);
  // 5 ms of warm-up and some 20 ms of samples: the clock falls during the last ones, and is read so after the end
  CHECK(!out.records[0].throttled.empty());
  CHECK(out.records[0].throttled.back() == static_cast<int>(out.records[0].samples_us.size()) - 1);
  // the second begins cool, and has flags of its own alone
  CHECK(out.records[1].throttled.front() > 0);
}

TEST_CASE("harness: a time that drifts does not converge") {
  // 2 % slower every 10 ms, without any noise: every sample is exact, and the median is not
  MadeUpDevice device;
  MadeUpBackend* clock = nullptr;
  device.time = [&](const Point&) { return (10.0 + 20.0 * clock->now().base()) * kMicrosecond; };
  MadeUpBackend backend(device);
  clock = &backend;
  const auto record = measure_point(backend, point(1), 100.0 * kMillisecond, 5.0 * kMillisecond, {});
  REQUIRE(record);
  CHECK(record->stop == Stop::kTime);
  CHECK(statistics_of(record->samples_us).drifts);
}

TEST_CASE("harness: points out of memory, unknown, refused or with a wrong result are recorded, the others measured") {
  MadeUpDevice device;
  device.too_large = {point(2).key()};
  device.unknown = {point(3).key()};
  device.wrong = {point(4).key()};
  device.refused = {point(6).key()};
  MadeUpBackend backend(device);
  const Run out = run(backend, {point(1), point(2), point(3), point(4), point(6), point(5)});
  REQUIRE(out.records.size() == 6);
  CHECK(out.records[1].stop == Stop::kOutOfMemory);
  CHECK(out.records[2].stop == Stop::kUnsupported);
  CHECK(out.records[3].stop == Stop::kWrongResult);
  CHECK(out.records[3].note == "element 3 differs");
  CHECK(out.records[4].stop == Stop::kFailed);
  CHECK(out.records[4].note == "CUDA: launching: invalid argument");
  for (const std::size_t i : {1u, 2u, 3u, 4u}) CHECK(!out.records[i].has_time());
  CHECK(out.records[5].has_time());
  CHECK(out.summary.failed == 1);
  CHECK(out.summary.measured == 2);
  CHECK(out.summary.out_of_memory == 1);
  CHECK(out.summary.unsupported == 1);
  CHECK(out.summary.wrong == 1);
}

TEST_CASE("harness: an interrupted run keeps what it has, and the next one continues from there") {
  std::vector<Point> points;
  for (int m = 1; m <= 6; ++m) points.push_back(point(m));
  MadeUpBackend backend({});
  HarnessOptions options;
  int asked = 0;
  options.first_warm_up = options.warm_up;
  options.interrupted = [&] { return ++asked > 90; };  // a point asks some 27 times
  const Run first = run(backend, points, options);
  CHECK(first.summary.interrupted);
  REQUIRE(!first.records.empty());
  REQUIRE(first.records.size() < points.size());
  for (const Record& record : first.records) CHECK(record.samples_us.size() >= 10);

  std::set<std::string> found;
  for (const Record& record : first.records) found.insert(record.point.key());
  MadeUpBackend fresh({});
  const Run second = run(fresh, points, {}, found);
  CHECK(!second.summary.interrupted);
  CHECK(second.summary.found == first.records.size());
  CHECK(second.records.size() + first.records.size() == points.size());
  CHECK(second.records.front().point.key() == points[first.records.size()].key());
  CHECK(fresh.prepared == static_cast<int>(second.records.size()));
}

TEST_CASE("harness: no budget is overrun by more than a point, and what was not reached is counted") {
  MadeUpDevice device;
  device.noise = 0.3;  // nothing converges
  device.preparation = 20.0 * kMillisecond;
  for (const double budget : {60.0, 180.0}) {
    MadeUpBackend backend(device);
    const std::vector<Point> points = default_grid(device.device, level_of_budget(Seconds{budget}));
    HarnessOptions options;
    options.budget = Seconds{budget};
    options.max_samples = 30;  // of 1 ms, each with a rest of 3
    const Run out = run(backend, points, options);
    CHECK(backend.now().base() <= budget + 0.5);
    CHECK(out.summary.not_reached == 0);
    CHECK(out.summary.measured == points.size());
  }
  MadeUpBackend slow(device);
  HarnessOptions options;
  options.budget = Seconds{1.0};
  const Run out = run(slow, default_grid(device.device, 1), options);
  CHECK(slow.now().base() <= 1.5);
  CHECK(out.summary.not_reached > 0);
  CHECK(out.summary.not_reached + out.records.size() == out.summary.points);
}

TEST_CASE("harness: a lost device ends the run with what was measured before, and the point that lost it") {
  MadeUpDevice device;
  int calls = 0;
  device.time = [&](const Point&) -> Seconds {
    if (++calls > 400) throw Unavailable("CUDA: running kernels: an illegal memory access was encountered");
    return 10.0 * kMicrosecond;
  };
  MadeUpBackend backend(device);
  std::vector<Record> records;
  std::vector<Point> points;
  for (int m = 1; m <= 30; ++m) points.push_back(point(m));
  HarnessOptions options;
  options.first_warm_up = options.warm_up;  // some 27 calls a point
  CHECK_THROWS_AS(measure(backend, points, {}, options, [&](const Record& r) { records.push_back(r); }, {}),
                  Unavailable);
  CHECK(records.size() > 2);
  CHECK(records.size() < 30);
  CHECK(records[records.size() - 2].has_time());
  CHECK(!records.back().has_time());
  CHECK(records.back().stop == Stop::kFailed);
  CHECK(records.back().note.ends_with("an illegal memory access was encountered"));
}

TEST_CASE("harness: the CPU backend's kernels equal their references") {
  const std::unique_ptr<Backend> backend = open_cpu_backend();
  for (const Point& p : cpu_grid()) {
    if (p.op == "stream" && p.number("bytes") > 1 << 20) continue;
    INFO(p.key());
    CHECK(backend->prepare(p)->check() == "");
  }
  CHECK_THROWS_AS(backend->prepare({.op = "gemm", .dtype = "fp8", .shape = {}}), Unsupported);
}

TEST_CASE("grid: levels hold one another, points differ, and every operator is there") {
  const Device device{.name = "x",
                      .driver = "",
                      .cuda = "",
                      .compute_capability = "",
                      .sm_count = 132,
                      .devices = 2,
                      .memory_bytes = 85e9,
                      .l2_bytes = 50e6};
  std::set<std::string> before, operators;
  for (int level = 0; level <= 2; ++level) {
    std::set<std::string> keys;
    for (const Point& p : default_grid(device, level)) {
      keys.insert(p.key());
      operators.insert(p.op);
    }
    CHECK(keys.size() == default_grid(device, level).size());
    CHECK(std::includes(keys.begin(), keys.end(), before.begin(), before.end()));
    CHECK(keys.size() > before.size());
    before = keys;
  }
  for (const std::string_view op : grid_operators()) CHECK(operators.contains(std::string(op)));
  CHECK(level_of_budget(60.0 * kSecond) == 0);
  CHECK(level_of_budget(180.0 * kSecond) == 1);
  CHECK(level_of_budget(600.0 * kSecond) == 2);
}
