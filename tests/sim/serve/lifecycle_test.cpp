// Timeouts of clients, and full queues.
#include <doctest/doctest.h>

#include "base/config_node.h"
#include "sim/step/deployment.h"
#include "tests/sim/serve/fake.h"

using namespace roofcast;

namespace {

struct Played {
  ServingMetrics metrics;
  fake::Recorder seen;
};

Played play(fake::Requests requests, const WorkloadSpec& workload, int max_num_seqs, ServingOptions options) {
  const auto d = fake::deployment(10000);
  d->engine.max_num_seqs = max_num_seqs;
  d->engine.block_size = 1;
  Played p;
  p.metrics = simulate(d, requests, workload, options, &p.seen);
  return p;
}

WorkloadSpec open() {
  WorkloadSpec w;
  w.arrivals.process = ArrivalSpec::Process::kTrace;
  return w;
}

double prefilled(const fake::Recorder& seen) {
  double tokens = 0;
  for (const StepRecord& s : seen.steps) tokens += static_cast<double>(s.prefill_tokens);
  return tokens;
}

double decoded(const fake::Recorder& seen) {
  double tokens = 0;
  for (const StepRecord& s : seen.steps) tokens += static_cast<double>(s.steps) * s.decodes;
  return tokens;
}

std::string error_of(const char* workload) {
  try {
    (void)parse_workload(ConfigReader(parse_config_text(workload, "w"), "a workload"));
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("timeout: the request of a client that gives up leaves at the end of the step") {
  // Prefill of 100 tokens: 1 ms + 100 x 10 us = 2 ms. A decode step is 1010 us + 0.01 us a cached token: the k-th ends
  // at 2 + 1.010 k + 0.01e-3 (100 k + k (k - 1) / 2) ms. At 10 ms the eighth is under way: it ends at 10.088 ms.
  WorkloadSpec w = open();
  w.patience.total = 10 * kMillisecond;
  for (const std::int64_t steps : {std::int64_t{1} << 40, std::int64_t{1}}) {
    ServingOptions options = fake::options();
    options.max_steps_per_event = steps;
    const Played p = play(fake::Requests().add(0, 100, 50), w, 8, options);
    CHECK(p.metrics.completed == 0);
    CHECK(p.metrics.failed == 1);
    CHECK(p.metrics.cancelled == 1);
    CHECK(p.metrics.cancelled_tokens == 9);  // the first from the prefill
    CHECK(p.metrics.iterations == 9);
    CHECK(p.seen.steps.back().end.in(kMillisecond) == doctest::Approx(2 + 8.08 + 0.008 + 0.00028));
  }
}

TEST_CASE("timeout: a request that is answered in time is not touched") {
  WorkloadSpec w = open();
  w.patience = {.first_token = 3 * kMillisecond, .total = 60 * kMillisecond};
  const Played p = play(fake::Requests().add(0, 100, 50), w, 8, fake::options());
  const Played endless = play(fake::Requests().add(0, 100, 50), open(), 8, fake::options());
  CHECK(p.metrics.completed == 1);
  CHECK(p.metrics.cancelled == 0);
  CHECK(p.metrics.duration == endless.metrics.duration);
}

TEST_CASE("timeout: a queued request leaves, and the next moves up") {
  // One place. The first runs to 2 ms + 19 decode steps = 21.2 ms; the others wait.
  WorkloadSpec w = open();
  w.patience.first_token = 5 * kMillisecond;
  const Played p = play(fake::Requests().add(0, 100, 20).add(0.0001, 10, 5).add(0.006, 10, 5).add(0.020, 10, 5), w, 1,
                        fake::options());
  CHECK(p.metrics.completed == 2);
  CHECK(p.metrics.cancelled == 2);
  CHECK(p.metrics.cancelled_tokens == 0);
  CHECK(p.seen.requests.count(0) == 1);
  CHECK(p.seen.requests.count(3) == 1);
  // tokens are conserved: what was prefilled and decoded is what was answered
  CHECK(prefilled(p.seen) == 110);
  CHECK(decoded(p.seen) == 19 + 4);
}

TEST_CASE("timeout: tokens delivered too late by a slow front end count as given up") {
  const auto d = fake::deployment(10000);
  d->engine.host.token_time = Seconds(10e-3);
  WorkloadSpec w = open();
  w.patience.total = 12 * kMillisecond;  // the step ends at 2 ms, its token is out at 12 ms; two are at 22 ms
  fake::Requests one, two;
  one.add(0, 100, 1);
  two.add(0, 100, 2);
  CHECK(simulate(d, one, w, fake::options()).completed == 1);
  const ServingMetrics m = simulate(d, two, w, fake::options());
  CHECK(m.completed == 0);
  CHECK(m.cancelled == 1);
}

TEST_CASE("timeout: in a closed loop the user goes on with the next request") {
  WorkloadSpec w = fake::closed_loop(2);
  w.patience.total = 10 * kMillisecond;
  fake::Requests requests;
  for (int i = 0; i < 20; ++i) requests.add(0, 100, i % 2 == 0 ? 3 : 500);
  const Played p = play(requests, w, 8, fake::options());
  CHECK(p.metrics.completed == 10);
  CHECK(p.metrics.cancelled == 10);
  CHECK(p.metrics.output_tokens == 30);
}

TEST_CASE("timeout: a cache in transfer is freed on both sides") {
  const auto d = fake::deployment(10000);
  for (const double limit : {1.0, 2.5, 50.0, 101.9, 103.0}) {  // before, at, during the transfer of 100 ms, and after
    WorkloadSpec w = open();
    w.patience.total = limit * kMillisecond;
    ServingOptions options = fake::options();
    options.disaggregation =
        Disaggregation{.prefill = d, .prefill_replicas = 1, .bandwidth = BytesPerSecond(1e3), .latency = {}};
    fake::Requests requests;
    requests.add(0, 100, 5000).add(0.2, 100, 1);
    const ServingMetrics m = simulate(d, requests, w, options);  // checks that all cache was given back
    CHECK(m.completed + m.cancelled == 2);
    CHECK(m.cancelled >= 1);
    CHECK(m.cancelled_tokens <= 4);  // what lands too late leaves after the step under way
  }
}

TEST_CASE("max_queue: a request that finds the queue full is refused") {
  ServingOptions options = fake::options();
  options.max_queue = 1;
  const Played p =
      play(fake::Requests().add(0, 100, 20).add(0.001, 10, 5).add(0.002, 10, 5).add(0.030, 10, 5), open(), 1, options);
  CHECK(p.metrics.completed == 3);
  CHECK(p.metrics.failed == 1);
  CHECK(p.metrics.rejected == 1);
  CHECK(p.seen.requests.count(2) == 0);
}

TEST_CASE("timeout: an overloaded server sheds load") {
  // One place, requests of about 21 ms every 10 ms: without a limit the queue grows, with one about half are answered.
  fake::Requests requests;
  for (int i = 0; i < 400; ++i) requests.add(i * 0.010, 100, 20);
  WorkloadSpec w = open();
  const Played endless = play(requests, w, 1, fake::options());
  w.patience.first_token = 100 * kMillisecond;
  const Played limited = play(requests, w, 1, fake::options());
  CHECK(endless.metrics.ttft_ms.max() > 4000);
  CHECK(limited.metrics.ttft_ms.max() <= 100);
  CHECK(limited.metrics.completed > 180);
  CHECK(limited.metrics.completed + limited.metrics.cancelled == 400);
}

TEST_CASE("workload: timeouts and priorities, valid and invalid") {
  const auto spec = [](const std::string& more) {
    return "{arrivals: {process: closed_loop, concurrency: 1}, prompt_tokens: 8, output_tokens: 8, requests: 9, " +
           more + "}";
  };
  const auto read = [&](const std::string& more) {
    return parse_workload(ConfigReader(parse_config_text(spec(more), "w"), "a workload"));
  };
  CHECK(read("timeout: 30 s").patience.total == Seconds(30));
  CHECK_FALSE(read("timeout: 30 s").patience.first_token);
  CHECK(read("timeout: {first_token: 2 s}").patience.first_token == Seconds(2));
  CHECK(read("turns: 1").patience.endless());
  CHECK(read("priorities: [0.25, 0.75]").priorities == std::vector<double>{0.25, 0.75});
  CHECK(read("priorities: [0.33, 0.33, 0.33]").priorities.back() == doctest::Approx(1.0 / 3));  // two digits of thirds
  CHECK(error_of(spec("timeout: 0 s").c_str()).find("a timeout must be at least 1 ms") != std::string::npos);
  CHECK(error_of(spec("timeout: soon").c_str()).find("'timeout' must be a time") != std::string::npos);
  CHECK(error_of(spec("timeout: {fist_token: 1 s}").c_str()).find("nearest is 'first_token'") != std::string::npos);
  for (const char* shares : {"[0, 0]", "[5, 5]", "[0.1, 0.8]"}) {
    const std::string error = error_of(spec("priorities: " + std::string(shares)).c_str());
    CHECK(error.find("the shares of 'priorities' must add up to 1") != std::string::npos);
  }
}

TEST_CASE("priorities: requests are drawn by their shares, and lengths do not change") {
  WorkloadSpec w = fake::closed_loop(1);
  w.prompt_tokens = {LengthSpec::Uniform{1, 1000}};
  w.requests = 4000;
  const auto plain = make_source(w, 3);
  w.priorities = {0.25, 0.0, 0.75};
  const auto source = make_source(w, 3);
  Request a, b;
  std::array<int, 3> seen{};
  while (source->next(a) && plain->next(b)) {
    REQUIRE(a.prompt_tokens == b.prompt_tokens);
    ++seen[static_cast<std::size_t>(a.priority)];
  }
  CHECK(seen[0] == doctest::Approx(1000).epsilon(0.06));
  CHECK(seen[1] == 0);
}
