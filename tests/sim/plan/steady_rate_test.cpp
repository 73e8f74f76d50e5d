#include "sim/plan/steady_rate.h"

#include <doctest/doctest.h>

using namespace roofcast;

namespace {

/// Two requests of 2 s and 3 s, 100 tokens each.
ServingMetrics two_requests() {
  ServingMetrics m;
  m.duration = Seconds(10);
  m.completed = 2;
  m.output_tokens = 200;
  m.e2el_ms.add(2000);
  m.e2el_ms.add(3000);
  return m;
}

}  // namespace

TEST_CASE("steady rate: users x tokens over latencies and pauses") {
  WorkloadSpec loop;
  loop.arrivals.process = ArrivalSpec::Process::kClosedLoop;
  loop.arrivals.concurrency = 4;
  // A user gets 100 tokens every 2.5 s: 4 x 40 tokens/s, however long the run took.
  CHECK(steady_output_rate(loop, two_requests()) == doctest::Approx(160));
  // With a pause of 1.5 s every 4 s: 4 x 25.
  loop.arrivals.think_time = Seconds(1.5);
  CHECK(steady_output_rate(loop, two_requests()) == doctest::Approx(100));
}

TEST_CASE("steady rate: of closed loops alone, and of runs that completed something") {
  WorkloadSpec open;
  open.arrivals.process = ArrivalSpec::Process::kPoisson;
  CHECK(steady_output_rate(open, two_requests()) == 0);
  WorkloadSpec loop;
  loop.arrivals.process = ArrivalSpec::Process::kClosedLoop;
  CHECK(steady_output_rate(loop, {}) == 0);
}
