#include "reports/run_observers.h"

#include <algorithm>

#include <doctest/doctest.h>

using namespace roofcast;
using namespace roofcast::reports;

TEST_CASE("intervals: time means, whatever the grid") {
  IntervalObserver o;
  // 10 s with 4 sequences and 2 waiting, 20 steps: 80 output tokens; then 10 s idle, then one request ends
  o.on_step({.start = Seconds(0), .end = Seconds(10), .steps = 20, .decodes = 4, .waiting = 2, .kv_usage = 0.5});
  o.on_request({.arrival = Seconds(5), .e2el = Seconds(14.9)});
  double tokens = 0, waiting = 0, completed = 0;
  for (const auto& bin : o.json()) {
    const double width = bin["end_s"].get<double>() - bin["start_s"].get<double>();
    tokens += width * bin["output_tokens_per_s"].get<double>();
    waiting += width * bin["waiting"].get<double>();
    completed += bin["completed"].get<double>();
  }
  CHECK(tokens == doctest::Approx(80));
  CHECK(waiting == doctest::Approx(20));  // 2 for 10 s
  CHECK(completed == 1);
  o.on_step({.start = Seconds(100000), .end = Seconds(100001), .steps = 1, .decodes = 1});
  CHECK(o.json().size() <= 512);
  CHECK(o.json()[0]["running"].get<double>() == doctest::Approx(4 * 10.0 / (o.json()[0]["end_s"].get<double>())));
}

TEST_CASE("intervals: replicas of a fleet that changes") {
  IntervalObserver o;
  o.on_fleet({.at = Seconds(0), .serving = 2});
  o.on_fleet({.at = Seconds(4), .serving = 2, .starting = 1});
  o.on_fleet({.at = Seconds(6), .serving = 3});
  o.on_fleet({.at = Seconds(8), .serving = 2, .down = 1});
  o.on_step({.start = Seconds(0), .end = Seconds(10), .steps = 20, .decodes = 4});
  double serving = 0, starting = 0, down = 0;
  for (const auto& bin : o.json()) {
    const double width = std::min(10.0, bin["end_s"].get<double>()) - bin["start_s"].get<double>();
    serving += width * bin["replicas"].get<double>();
    starting += width * bin["replicas_starting"].get<double>();
    down += width * bin["replicas_down"].get<double>();
  }
  CHECK(serving == doctest::Approx(2 * 6 + 3 * 2 + 2 * 2));
  CHECK(starting == doctest::Approx(2));
  CHECK(down == doctest::Approx(2));
  IntervalObserver plain;
  plain.on_step({.start = Seconds(0), .end = Seconds(1), .steps = 1, .decodes = 1});
  CHECK_FALSE(plain.json()[0].contains("replicas"));
}

TEST_CASE("timeline: a request's phases follow one another within it") {
  TimelineObserver o(2);
  o.on_request({.id = 3, .arrival = Seconds(1), .queue = Seconds(0.5), .ttft = Seconds(0.75), .e2el = Seconds(2)});
  const auto& spans = o.timeline().spans;
  REQUIRE(spans.size() == 4);  // request, queue 1-1.5, prefill 1.5-1.75, decode 1.75-3
  CHECK(spans[1].end == spans[2].start);
  CHECK(spans[2].end == spans[3].start);
  CHECK(spans[3].end == spans[0].end);
  for (int i = 0; i < 3; ++i) o.on_step({.replica = 1, .start = Seconds(i), .end = Seconds(i + 1), .decodes = 2});
  CHECK(o.timeline().slices.size() == 2);
  CHECK(o.full());
  CHECK(o.timeline().tracks.size() == 2);
}

TEST_CASE("timeline: a cache that moves is a slice of the link, with an arrow from within the prefill") {
  TimelineObserver o;
  o.on_step({.replica = 0, .start = Seconds(1), .end = Seconds(2), .prefills = 1});
  o.on_transfer({.request = 4, .from = 0, .to = 1, .prefilled = Seconds(2), .start = Seconds(2.5), .end = Seconds(3)});
  const Timeline& t = o.timeline();
  REQUIRE(t.flows.size() == 1);
  const TimelineFlow& flow = t.flows[0];
  const auto inside = [&](int process, int thread, Seconds at) {
    return std::any_of(t.slices.begin(), t.slices.end(), [&](const TimelineSlice& s) {
      return s.process == process && s.thread == thread && s.start < at && at < s.end;
    });
  };
  CHECK(inside(flow.from_process, flow.from_thread, flow.start));
  CHECK(inside(flow.to_process, flow.to_thread, flow.end));
  CHECK(flow.from_process != flow.to_process);
  CHECK(t.tracks.size() == 2);
}
