#include "sim/serve/token_delivery.h"

#include <doctest/doctest.h>

#include "tests/sim/serve/fake.h"

using namespace roofcast;

namespace {

SimTime at_ms(double ms) { return SimTime::of(ms * kMillisecond); }

StepRun one_step(double start_ms, double end_ms, int rows) {
  StepRun run;
  run.start = at_ms(start_ms);
  run.end = at_ms(end_ms);
  run.steps = 1;
  run.rows = rows;
  run.decoding = {rows};
  run.cost.time = (end_ms - start_ms) * kMillisecond;
  return run;
}

}  // namespace

TEST_CASE("token delivery: without host costs tokens are out when their step ends, and gaps are the steps") {
  fake::LinearPricer pricer;
  Collector collector({}, nullptr);
  collector.begin(SimTime(0));
  TokenDelivery delivery(EngineSpec{}, 1, 1.0, pricer, collector);
  delivery.join(0, at_ms(10));
  delivery.join(0, at_ms(6));  // its last token was earlier than the other's
  delivery.deliver(one_step(10, 12, 2), 2);
  CHECK(delivery.delivered() == at_ms(12));
  CHECK(delivery.answered() == at_ms(12));
  CHECK(collector.metrics().itl_ms.count() == 2);
  CHECK(collector.metrics().itl_ms.mean() == doctest::Approx((2 + 6) / 2.0));
}

TEST_CASE("token delivery: the front end sends tokens one after another") {
  fake::LinearPricer pricer;
  Collector collector({}, nullptr);
  EngineSpec engine;
  engine.host.token_time = kMillisecond;
  TokenDelivery delivery(engine, 1, 1.0, pricer, collector);
  delivery.deliver(one_step(0, 10, 0), 3);
  CHECK(delivery.delivered() == at_ms(12));  // the middle one of three
  CHECK(delivery.answered() == at_ms(12));   // the server was idle before
  // 20 ms later the server is busy for 3 of 20 ms: tokens wait for 3 ms x 0.15 / 0.85 more.
  delivery.deliver(one_step(20, 30, 0), 3);
  CHECK((delivery.answered() - delivery.delivered()).milliseconds() == doctest::Approx(3 * 0.15 / 0.85).epsilon(1e-6));
}
