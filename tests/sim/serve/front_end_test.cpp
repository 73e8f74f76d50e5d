#include "sim/serve/front_end.h"

#include <doctest/doctest.h>

#include "base/random.h"

using namespace roofcast;

namespace {

EngineSpec engine(double request_ms, double prompt_token_us, double latency_ms, double token_us) {
  EngineSpec e;
  e.host.request_time = kMillisecond * request_ms;
  e.host.prompt_token_time = kMicrosecond * prompt_token_us;
  e.host.request_latency = kMillisecond * latency_ms;
  e.host.token_time = kMicrosecond * token_us;
  return e;
}
SimTime ms(double t) { return SimTime::of(kMillisecond * t); }

}  // namespace

TEST_CASE("front end: requests are received one by one, then wait a fixed time") {
  FrontEnd front(engine(2, 10, 5, 0));
  // 2 ms + 100 * 10 us = 3 ms each, one after another, + 5 ms
  CHECK(front.receive(ms(0), 100) == ms(8));
  CHECK(front.receive(ms(0), 100) == ms(11));
  CHECK(front.receive(ms(100), 100) == ms(108));
}

TEST_CASE("front end: tokens of other text take a different time") {
  FrontEnd front(engine(2, 10, 5, 0), 1, 0.3);
  CHECK(front.receive(ms(0), 100) == ms(7.3));  // 2 ms + 100 * 3 us, + 5 ms
}

TEST_CASE("front end: servers share requests and tokens, which makes one request no faster") {
  EngineSpec four = engine(2, 10, 5, 1000);
  four.api_servers = 4;
  FrontEnd front(four, 8);
  // A request takes 2 ms + 100 * 10 us = 3 ms of one server, then 5 ms; the four take one every 0.75 ms.
  CHECK(front.receive(ms(0), 100) == ms(8));
  CHECK(front.receive(ms(0), 100) == ms(8.75));
  CHECK(front.busy(8) == ms(2));  // 8 tokens of 1 ms by four servers
  EngineSpec each = engine(2, 10, 5, 1000);
  each.api_servers = 0;  // one for each rank
  CHECK(FrontEnd(each, 8).busy(8) == ms(1));
}

TEST_CASE("front end: a chunk of several tokens is one message") {
  EngineSpec chunks = engine(0, 0, 0, 1000);
  chunks.stream_interval = 10;
  CHECK(FrontEnd(chunks).busy(20) == ms(2));  // two chunks of 1 ms
}

TEST_CASE("front end: a lagging server delays tokens") {
  FrontEnd front(engine(0, 0, 0, 1000));
  CHECK(front.deliver(ms(10), ms(10), 1, 1).last == ms(11));
  // Three tokens from 20 ms on, done at 23; the middle one at 22.
  CHECK(front.deliver(ms(20), ms(20), 1, 3).last == ms(22));
  // Steps of 2 tokens at 21 22 23 24: the server is busy until 23, then 2 ms a step: 25 27 29 31.
  const FrontEnd::Delivery run = front.deliver(ms(21), ms(24), 4, 2);
  CHECK(run.first == ms(24.5));
  CHECK(run.last == ms(30.5));
}

TEST_CASE("front end: a run's closed form equals its steps one by one") {
  Random random(5);
  for (int round = 0; round < 200; ++round) {
    FrontEnd fast(engine(0, 0, 0, 300)), plain(engine(0, 0, 0, 300));
    double at = 0;
    for (int run = 0; run < 10; ++run) {
      const std::int64_t steps = random.uniform_integer(1, 20), tokens = random.uniform_integer(1, 8);
      double step = 0.2 + 3 * random.uniform();
      FrontEnd::Delivery one;
      SimTime first, last;
      for (std::int64_t i = 0; i < steps; ++i) {
        at += step *= 1.01;
        if (i == 0) first = ms(at);
        last = ms(at);
        one = plain.deliver(last, last, 1, tokens);
      }
      CHECK(fast.deliver(first, last, steps, tokens).last == one.last);
    }
  }
}

TEST_CASE("front end: the queueing delay grows with utilization, up to a limit") {
  const FrontEnd front(engine(0, 0, 0, 100));
  const auto wait_ms = [&](double step_ms) { return front.wait(kMillisecond * step_ms, 50).in(kMillisecond); };
  // 50 tokens are 5 ms of work: half busy it holds up 5 ms, at 80 % four times that.
  CHECK(wait_ms(10) == doctest::Approx(5));
  CHECK(wait_ms(6.25) == doctest::Approx(20));
  CHECK(wait_ms(500) == doctest::Approx(5 * 0.01 / 0.99));
  CHECK(wait_ms(5.01) == doctest::Approx(5 * 19));
  CHECK(wait_ms(1) == doctest::Approx(5 * 19));
}

TEST_CASE("front end: workers share the tokens") {
  EngineSpec e = engine(0, 0, 0, 1000);
  e.postprocess_workers = 4;
  FrontEnd front(e);
  CHECK(front.deliver(ms(0), ms(0), 1, 1).last == ms(0.25));
}
