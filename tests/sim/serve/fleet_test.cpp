// Autoscaling and failures.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include "base/config_node.h"
#include "sim/step/deployment.h"
#include "tests/sim/serve/fake.h"

using namespace roofcast;

namespace {

SimTime at(double seconds) { return SimTime::of(Seconds(seconds)); }

struct Watcher final : Observer {
  void on_fleet(const FleetRecord& r) override { fleet.push_back(r); }
  void on_request(const RequestRecord& r) override { requests[r.id] = r; }
  void on_step(const StepRecord& s) override {
    prefilled += static_cast<double>(s.prefill_tokens);
    decoded += static_cast<double>(s.steps) * s.decodes;
  }
  std::vector<FleetRecord> fleet;
  std::map<std::int64_t, RequestRecord> requests;
  double prefilled = 0, decoded = 0;
};

std::shared_ptr<Deployment> deployment(int max_num_seqs = 4) {
  auto d = fake::deployment(100000);
  d->engine.max_num_seqs = max_num_seqs;
  return d;
}

FleetSpec parse(const std::string& scaling, const std::string& failures = "", int replicas = 4) {
  const auto reader = [](const std::string& text) -> std::optional<ConfigReader> {
    if (text.empty()) return std::nullopt;
    return ConfigReader(parse_config_text(text, "fleet"));
  };
  return parse_fleet({replicas, Bytes(40e9), Seconds(60), reader(scaling)}, std::nullopt, reader(failures));
}

std::string error_of(const std::string& scaling, const std::string& failures = "") {
  try {
    (void)parse(scaling, failures);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "no error";
}

AutoscalingSpec random_scaling(Random& random) {
  AutoscalingSpec spec{.min = static_cast<int>(random.uniform_integer(0, 1)),
                       .max = 5,
                       .policy = static_cast<ScalingPolicy>(random.uniform_integer(0, 2)),
                       .target = 0.9};
  spec.interval = Seconds(0.2);
  spec.scale_down_delay = Seconds(0.3);
  return spec;
}

/// Each role from one worker to four, two requests in flight on each.
ServingOptions both_roles_scaled() {
  ServingOptions options = fake::options();
  options.router = "least_loaded";
  options.disaggregation = Disaggregation{.prefill = deployment(), .bandwidth = BytesPerSecond(1e15)};
  AutoscalingSpec spec{.min = 1, .max = 4, .policy = ScalingPolicy::kConcurrency, .target = 2};
  spec.interval = Seconds(1);
  spec.scale_down_delay = Seconds(20);
  options.fleet.autoscaling = options.fleet.prefill_autoscaling = spec;
  options.fleet.cold_start = Seconds(3);
  return options;
}

}  // namespace

TEST_CASE("autoscaler: concurrency and utilization bring the load of a replica down to the target") {
  AutoscalingSpec spec{.min = 1, .max = 10, .policy = ScalingPolicy::kConcurrency, .target = 8};
  spec.scale_down_delay = Seconds(0);
  Autoscaler concurrency(spec, 1);
  CHECK(concurrency.wanted(at(15), {.waiting = 10, .running = 15, .max_sequences = 4}, 1) == 4);  // ceil(25 / 8)
  CHECK(concurrency.wanted(at(30), {.waiting = 0, .running = 16, .max_sequences = 4}, 4) == 2);
  CHECK(concurrency.wanted(at(45), {.waiting = 900, .running = 16, .max_sequences = 4}, 2) == 10);
  CHECK(concurrency.wanted(at(60), {.waiting = 0, .running = 0, .max_sequences = 4}, 10) == 1);
  spec.policy = ScalingPolicy::kUtilization;
  spec.target = 0.5;
  Autoscaler utilization(spec, 1);
  CHECK(utilization.wanted(at(15), {.waiting = 1, .running = 5, .max_sequences = 4}, 2) == 3);  // 6 / (4 x 0.5)
}

TEST_CASE("autoscaler: the queue policy at most doubles and shrinks one by one") {
  AutoscalingSpec spec{.min = 0, .max = 10, .policy = ScalingPolicy::kQueue, .target = 4};
  spec.scale_down_delay = Seconds(0);
  Autoscaler queue(spec, 2);
  CHECK(queue.wanted(at(15), {.waiting = 12, .running = 8, .max_sequences = 4}, 2) == 3);  // 2 x 6 / 4
  CHECK(queue.wanted(at(30), {.waiting = 99, .running = 8, .max_sequences = 4}, 3) == 6);  // at most twice
  CHECK(queue.wanted(at(45), {.waiting = 3, .running = 8, .max_sequences = 4}, 6) == 6);
  CHECK(queue.wanted(at(50), {.waiting = 1, .running = 8, .max_sequences = 4}, 6) == 6);
  CHECK(queue.wanted(at(60), {.waiting = 0, .running = 8, .max_sequences = 4}, 6) == 5);
  CHECK(queue.wanted(at(70), {.waiting = 0, .running = 8, .max_sequences = 4}, 1) == 1);  // which runs them
  CHECK(queue.wanted(at(75), {.waiting = 0, .running = 0, .max_sequences = 4}, 1) == 0);
  CHECK(queue.wanted(at(90), {.waiting = 1, .running = 0, .max_sequences = 4}, 0) == 1);  // somebody has to serve it
}

TEST_CASE("autoscaler: delays keep it from following every peak") {
  AutoscalingSpec spec{.min = 1, .max = 10, .policy = ScalingPolicy::kConcurrency, .target = 1};
  spec.scale_up_delay = Seconds(30);
  spec.scale_down_delay = Seconds(60);
  Autoscaler scaler(spec, 2);
  const auto wanted = [&](double seconds, double load, int current) {
    return scaler.wanted(at(seconds), {.waiting = 0, .running = load, .max_sequences = 4}, current);
  };
  CHECK(wanted(15, 5, 2) == 2);  // 2 were wanted 15 s ago
  CHECK(wanted(30, 4, 2) == 2);
  CHECK(wanted(45, 4, 2) == 4);  // for 30 s at least 4
  CHECK(wanted(60, 1, 4) == 4);  // 4 were wanted within the last 60 s
  CHECK(wanted(90, 1, 4) == 4);
  CHECK(wanted(106, 1, 4) == 1);
}

TEST_CASE("fleet: paid seconds, and the expected number of random failures") {
  FleetSpec spec;
  spec.autoscaling.emplace();
  spec.cold_start = Seconds(10);
  spec.failures = FailureSpec{.mtbf = Seconds(1000)};
  FleetStates fleet(spec, {}, {4, 1}, 7);
  CHECK(fleet.count(ReplicaState::kActive) == 1);
  fleet.set(1, ReplicaState::kStarting, at(100));
  CHECK(fleet.ready_at(1) == at(110));
  fleet.set(1, ReplicaState::kActive, at(110));
  fleet.set(0, ReplicaState::kDraining, at(200));
  fleet.set(0, ReplicaState::kOff, at(230));
  CHECK(fleet.paid_seconds(at(0), at(300), false) == doctest::Approx(230 + 200));
  CHECK(fleet.paid_seconds(at(150), at(250), false) == doctest::Approx(80 + 100));
  CHECK(fleet.most_paid(false) == 2);
  double sum = 0;  // of one GPU
  for (int i = 0; i < 4000; ++i) sum += fleet.next_failure(2, at(0))->seconds().base();
  CHECK(sum / 4000 == doctest::Approx(1000).epsilon(0.05));
}

TEST_CASE("fleet: prefill-only replicas have their own cold start") {
  FleetSpec spec;
  spec.cold_start = Seconds(10);
  spec.prefill_cold_start = Seconds(4);
  FleetStates fleet(spec, {1, 1}, {2, 2}, 7);
  for (int i = 0; i < 3; ++i) fleet.set(i, ReplicaState::kStarting, at(100));
  CHECK(fleet.ready_at(0) == at(104));
  CHECK(fleet.ready_at(1) == at(110));
  CHECK(fleet.ready_at(2) == at(110));
}

TEST_CASE("autoscaling: replicas start cold under load and stop after it") {
  // Four sequences per replica, 2 in flight wanted; about 30 ms a request. From 10 s on for 20 s one every 2 ms, then
  // one a second.
  fake::Requests requests;
  for (int i = 0; i < 10; ++i) requests.add(i, 50, 20);
  for (int i = 0; i < 10000; ++i) requests.add(10 + i * 0.002, 50, 20);
  for (int i = 0; i < 100; ++i) requests.add(40 + i, 50, 20);
  ServingOptions options = fake::options();
  options.router = "least_loaded";
  options.fleet.autoscaling = AutoscalingSpec{.min = 1, .max = 6, .policy = ScalingPolicy::kConcurrency, .target = 2};
  options.fleet.autoscaling->interval = Seconds(1);
  options.fleet.autoscaling->scale_down_delay = Seconds(20);
  options.fleet.cold_start = Seconds(3);
  Watcher seen;
  const ServingMetrics m = simulate(deployment(), requests, {}, options, &seen);
  CHECK(m.completed == 10110);
  CHECK(m.most_replicas == 6);
  CHECK(m.replica_starts == 5);
  int most = 0;
  double first_start = 0, first_served = 0;
  for (const FleetRecord& r : seen.fleet) {
    most = std::max(most, r.serving);
    if (r.starting > 0 && first_start == 0) first_start = r.at.base();
    if (r.serving > 1 && first_served == 0) first_served = r.at.base();
  }
  CHECK(most == 6);
  CHECK(first_start == doctest::Approx(11));  // the decision after the wave began
  CHECK(first_served == doctest::Approx(14));
  CHECK(seen.fleet.back().serving == 1);
  CHECK(seen.fleet.back().starting == 0);
  // one all the time, five more from their start to the end of the delay
  CHECK(m.replica_seconds > m.duration.base() + 5 * 30);
  double seconds = 0, replica_seconds = 0;
  for (const PaidFleet& paid : m.paid_fleets) seconds += paid.seconds, replica_seconds += paid.replicas * paid.seconds;
  CHECK(seconds == doctest::Approx(m.duration.base()));
  CHECK(replica_seconds == doctest::Approx(m.replica_seconds));
  CHECK(m.replica_seconds < m.duration.base() + 5 * 90);
  // what an unchanging fleet of six would have cost
  CHECK(m.replica_seconds < 0.7 * 6 * m.duration.base());
}

TEST_CASE("autoscaling: down to zero, after which the first request waits for a cold start") {
  fake::Requests requests;
  requests.add(0, 50, 20).add(100, 50, 20);
  ServingOptions options = fake::options();
  options.fleet.autoscaling = AutoscalingSpec{.min = 0, .max = 2, .policy = ScalingPolicy::kConcurrency, .target = 8};
  options.fleet.autoscaling->scale_down_delay = Seconds(30);
  options.fleet.cold_start = Seconds(20);
  Watcher seen;
  const ServingMetrics m = simulate(deployment(), requests, {}, options, &seen);
  CHECK(m.completed == 2);
  CHECK(seen.requests[0].ttft < Seconds(0.1));
  // sent at 100 s, decided at 105 s, ready at 125 s
  CHECK(seen.requests[1].ttft.base() == doctest::Approx(25).epsilon(0.001));
  CHECK(m.replica_seconds < 70);
}

TEST_CASE("failures: requests of a lost replica are recomputed elsewhere and keep their tokens") {
  for (const std::int64_t steps : {std::int64_t{1} << 40, std::int64_t{1}}) {
    fake::Requests requests;
    requests.add(0, 100, 50).add(0, 100, 50);  // one on each replica
    ServingOptions options = fake::options();
    options.replicas = 2;
    options.max_steps_per_event = steps;
    options.fleet = parse("", "{events: [{at: 10 ms, replica: 0}], repair: 1 h}", 2);
    Watcher seen;
    const ServingMetrics m = simulate(deployment(), requests, {}, options, &seen);
    CHECK(m.completed == 2);
    CHECK(m.replica_failures == 1);
    CHECK(m.requeued == 1);
    CHECK(m.lost == 0);
    // The eighth decode step is under way at 10 ms: nine tokens are out, and 109 are prefilled again.
    CHECK(seen.prefilled == 100 + 100 + 109);
    CHECK(seen.decoded == 49 + 8 + 40);  // the tenth token comes from that prefill
    CHECK(seen.requests[0].ttft.in(kMillisecond) == doctest::Approx(2));
    CHECK(seen.requests[0].e2el > seen.requests[1].ttft);
  }
}

TEST_CASE("failures: without requeue, requests fail with their replica") {
  fake::Requests requests;
  requests.add(0, 100, 50).add(0, 100, 50).add(0.001, 10, 5);
  ServingOptions options = fake::options();
  options.replicas = 2;
  options.fleet = parse("", "{events: [{at: 10 ms, replica: 0}], repair: 1 h, requests: fail}", 2);
  const ServingMetrics m = simulate(deployment(), requests, {}, options);
  CHECK(m.completed == 2);
  CHECK(m.failed == 1);
  CHECK(m.lost == 1);
}

TEST_CASE("failures: a run lasts until its last request is lost, and so does its work") {
  fake::Requests requests;
  requests.add(0, 100, 5).add(0.001, 100, 50);
  ServingOptions options = fake::options();
  options.fleet = parse("", "{events: [{at: 30 ms}], repair: 1 h, requests: fail}", 1);
  const ServingMetrics m = simulate(deployment(), requests, {}, options);
  CHECK(m.completed == 1);
  CHECK(m.lost == 1);
  CHECK(m.duration > Seconds(0.03));
  CHECK(m.gpu_busy_seconds <= m.duration.base() * (1 + 1e-9));
}

TEST_CASE("failures: the only replica restarts cold, and then serves what waited") {
  fake::Requests requests;
  requests.add(0, 100, 50).add(5, 10, 5);
  ServingOptions options = fake::options();
  options.fleet = parse("", "{events: [{at: 10 ms}], repair: 10 s}", 1);
  CHECK(options.fleet.cold_start.base() == doctest::Approx(60 + 20));  // 40 GB at 2 GB/s
  Watcher seen;
  const ServingMetrics m = simulate(deployment(), requests, {}, options, &seen);
  CHECK(m.completed == 2);
  CHECK(seen.requests[1].ttft.base() == doctest::Approx(85).epsilon(0.001));
  CHECK(seen.fleet.size() == 4);  // serving, down, starting, serving
}

TEST_CASE("failures: requests of a lost decode worker are prefilled again and keep their tokens") {
  for (const std::int64_t steps : {std::int64_t{1} << 40, std::int64_t{1}}) {
    fake::Requests requests;
    requests.add(0, 100, 50);
    ServingOptions options = fake::options();
    options.replicas = 2;  // numbers 1 and 2, after the prefill worker
    options.max_steps_per_event = steps;
    options.disaggregation = Disaggregation{.prefill = deployment(), .bandwidth = BytesPerSecond(1e15)};
    options.fleet = parse("", "{events: [{at: 10 ms, replica: 1}], repair: 1 h}", 3);
    Watcher seen;
    const ServingMetrics m = simulate(deployment(), requests, {}, options, &seen);
    CHECK(m.completed == 1);
    CHECK(m.requeued == 1);
    CHECK(seen.prefilled == 100 + 109);  // nine tokens were out
    CHECK(seen.decoded == 8 + 40);
    CHECK(seen.requests[0].ttft.in(kMillisecond) == doctest::Approx(2).epsilon(0.01));
  }
}

TEST_CASE("failures: a cache that arrived during the current step is lost with its decode worker") {
  // Both prompts are done at 2.92 ms. The first cache lands at 3.88 ms, and a token more is out at 4.891 ms; the second
  // lands at 4.84 ms. The client has its first token then: gaps count from there.
  fake::Requests requests;
  requests.add(0, 96, 50).add(0, 96, 50);
  ServingOptions options = fake::options();
  options.disaggregation = Disaggregation{.prefill = deployment(), .bandwidth = BytesPerSecond(1e5)};
  options.fleet = parse("", "{events: [{at: 4860 us, replica: 1}], repair: 100 ms}", 2);
  options.fleet.cold_start = Seconds(0.1);
  Watcher seen;
  const ServingMetrics m = simulate(deployment(), requests, {}, options, &seen);
  CHECK(m.completed == 2);
  CHECK(m.requeued == 2);
  CHECK(seen.prefilled == 96 + 96 + 98 + 97);  // two tokens were out, and one
  CHECK(seen.requests[1].ttft.in(kMillisecond) == doctest::Approx(4.84));
  Seconds after_first{};
  for (const auto& [id, r] : seen.requests) after_first += r.e2el - r.ttft;
  CHECK(m.itl_ms.count() == 2 * 49);
  CHECK(m.itl_ms.mean() * m.itl_ms.count() == doctest::Approx(after_first.in(kMillisecond)).epsilon(1e-9));
}

TEST_CASE("failures: a cache in transfer is lost when both its workers fail") {
  // Prefilled at 1.96 ms, and 9.6 ms under way to the first of two decode workers, number 1.
  const auto run = [](const std::string& events) {
    fake::Requests requests;
    requests.add(0, 96, 50);
    ServingOptions options = fake::options();
    options.replicas = 2;
    options.disaggregation = Disaggregation{.prefill = deployment(), .bandwidth = BytesPerSecond(1e4)};
    options.fleet = parse("", "{repair: 100 ms, events: " + events + "}", 3);
    options.fleet.cold_start = Seconds(0.1);
    Watcher seen;
    CHECK(simulate(deployment(), requests, {}, options, &seen).completed == 1);
    CHECK(seen.prefilled == doctest::Approx(seen.requests[0].ttft > Seconds(0.1) ? 2 * 96 : 96));
    return seen.requests[0].ttft.in(kMillisecond);
  };
  CHECK(run("[{at: 5 ms, replica: 0}]") == doctest::Approx(1.96 + 9.6));
  CHECK(run("[{at: 8 ms, replica: 1}]") == doctest::Approx(8 + 9.6));
  CHECK(run("[{at: 5 ms, replica: 0}, {at: 8 ms, replica: 1}]") == doctest::Approx(205 + 1.96 + 9.6));
}

TEST_CASE("failures: a cancelled transfer frees nothing when it would have ended") {
  // Prefilled at 1.96 ms, and 96 ms under way to the first decode worker, until 97.96 ms; that fails at 8 ms. Where it
  // was prefilled nothing else has room until its cache is on the other one.
  const auto run = [](int prefills, const std::string& events, double second_ms) {
    fake::Requests requests;
    requests.add(0, 96, 2).add(0.02, 96, 2);
    ServingOptions options = fake::options();
    options.replicas = 2;
    options.disaggregation = Disaggregation{
        .prefill = fake::deployment(112), .prefill_replicas = prefills, .bandwidth = BytesPerSecond(1e3)};
    options.fleet = parse("", "{repair: 1 h, events: " + events + "}", prefills + 2);
    Watcher seen;
    CHECK(simulate(deployment(), requests, {}, options, &seen).completed == 2);
    CHECK(seen.requests[0].ttft.in(kMillisecond) == doctest::Approx(second_ms));
    CHECK(seen.requests[1].ttft.in(kMillisecond) == doctest::Approx(second_ms + 1.96 + 96 - 20));
  };
  run(1, "[{at: 8 ms, replica: 1}]", 8 + 96);                                 // fetched again
  run(2, "[{at: 5 ms, replica: 0}, {at: 8 ms, replica: 2}]", 8 + 1.96 + 96);  // prefilled again, on number 1
}

TEST_CASE("failures: a client that gave up on a cache in transfer is counted when that is lost") {
  // 96 ms under way from 1.96 ms on; its client gives up at 50 ms, and the decode worker fails at 60 ms.
  fake::Requests requests;
  requests.add(0, 96, 50);
  WorkloadSpec w;
  w.patience.total = 50 * kMillisecond;
  ServingOptions options = fake::options();
  options.disaggregation = Disaggregation{.prefill = deployment(), .bandwidth = BytesPerSecond(1e3)};
  options.fleet = parse("", "{events: [{at: 60 ms, replica: 1}], repair: 1 h}", 2);
  const ServingMetrics m = simulate(deployment(), requests, w, options);
  CHECK(m.completed == 0);
  CHECK(m.cancelled == 1);
  CHECK(m.failed == 1);
  CHECK(m.requeued == 0);
}

TEST_CASE("failures: caches without a started transfer are lost with their prefill worker") {
  fake::Requests requests;
  requests.add(0, 100, 50).add(0, 100, 50);  // the second waits for the only place to decode
  ServingOptions options = fake::options();
  options.disaggregation = Disaggregation{.prefill = deployment(), .bandwidth = BytesPerSecond(1e15)};
  options.fleet = parse("", "{events: [{at: 10 ms, replica: 0}], repair: 100 ms}", 2);
  options.fleet.cold_start = Seconds(0.1);
  Watcher seen;
  const ServingMetrics m = simulate(deployment(1), requests, {}, options, &seen);
  CHECK(m.completed == 2);
  CHECK(m.requeued == 1);
  CHECK(seen.prefilled == 3 * 100);
  CHECK(seen.requests[0].ttft < Seconds(0.01));
  CHECK(seen.requests[1].ttft.base() == doctest::Approx(0.21).epsilon(0.03));
}

TEST_CASE("failures: the client of a lost cache has no token, and gives up on the first one") {
  // As above: the second cache is lost at 10 ms, and nothing is prefilled before 210 ms.
  fake::Requests requests;
  requests.add(0, 100, 50).add(0, 100, 50);
  WorkloadSpec w;
  w.patience.first_token = Seconds(0.05);
  ServingOptions options = fake::options();
  options.disaggregation = Disaggregation{.prefill = deployment(), .bandwidth = BytesPerSecond(1e15)};
  options.fleet = parse("", "{events: [{at: 10 ms, replica: 0}], repair: 100 ms}", 2);
  options.fleet.cold_start = Seconds(0.1);
  Watcher seen;
  const ServingMetrics m = simulate(deployment(1), requests, w, options, &seen);
  CHECK(m.completed == 1);
  CHECK(m.cancelled == 1);
  CHECK(seen.prefilled == 2 * 100);
}

TEST_CASE("failures: the gap over two hand-overs counts from the last delivered token") {
  // Nine tokens are out at 10.1 ms, when the only decode worker fails; the tenth comes from the prefill of 109 tokens,
  // and the eleventh when the decode worker serves again, at 210 ms. The prefill worker's server takes 5 ms a token.
  fake::Requests requests;
  requests.add(0, 100, 50);
  const auto prefill = deployment();
  prefill->engine.host.token_time = 5 * kMillisecond;
  ServingOptions options = fake::options();
  options.disaggregation = Disaggregation{.prefill = prefill, .bandwidth = BytesPerSecond(1e15)};
  options.fleet = parse("", "{events: [{at: 10 ms, replica: 1}], repair: 100 ms}", 2);
  options.fleet.cold_start = Seconds(0.1);
  fake::Recorder seen;
  const ServingMetrics m = simulate(deployment(), requests, {}, options, &seen);
  CHECK(m.completed == 1);
  REQUIRE(seen.transfers.size() == 2);
  // Eight steps of 1.01 ms and 0.01 us a cached token, then 1 + 109 x 0.01 ms; its token is out 5 ms later.
  const double prefilled = 2 + 8 * 1.01 + 1e-5 * (8 * 100 + 28) + 2.09;
  CHECK(seen.transfers[1].prefilled.in(kMillisecond) == doctest::Approx(prefilled));
  CHECK(m.itl_ms.max() == doctest::Approx(210 + 1.01 + 109e-5 - (prefilled + 5)).epsilon(1e-6));
}

TEST_CASE("failures and autoscaling over random scenarios: nothing is lost, and runs equal single steps") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const auto d = deployment(static_cast<int>(random.uniform_integer(1, 8)));
    d->memory.cache = Bytes(random.uniform() < 0.5 ? 900 : 100000);
    d->engine.prefix_caching = random.uniform() < 0.5;
    d->engine.async_scheduling = random.uniform() < 0.5;
    std::vector<Request> sent;
    double now = 0;
    for (int i = 0; i < 300; ++i) {
      Request r;
      r.id = i;
      now += random.exponential(random.uniform() < 0.05 ? 0.5 : 0.01);
      r.arrival = Seconds(now);
      r.prompt_tokens = static_cast<int>(random.uniform_integer(1, 300));
      r.output_tokens = static_cast<int>(random.uniform_integer(1, 100));
      if (r.prompt_tokens > 32) r.prefix_blocks = {1, 2}, r.prefix_block_tokens = 16;
      sent.push_back(r);
    }
    ServingOptions options = fake::options();
    options.replicas = 2;
    options.seed = seed;
    options.router = random.uniform() < 0.5 ? "round_robin" : "least_loaded";
    if (random.uniform() < 0.4) {
      options.disaggregation = Disaggregation{.prefill = std::make_shared<Deployment>(*d),
                                              .prefill_replicas = static_cast<int>(random.uniform_integer(1, 2)),
                                              .bandwidth = BytesPerSecond(random.uniform() < 0.5 ? 1e4 : 1e6)};
      if (random.uniform() < 0.6) options.fleet.prefill_autoscaling = random_scaling(random);
    }
    if (random.uniform() < 0.7) options.fleet.autoscaling = random_scaling(random);
    options.fleet.cold_start = Seconds(0.25);
    options.fleet.failures = FailureSpec{.mtbf = Seconds(2), .repair = Seconds(0.4), .requeue = random.uniform() < 0.7};
    WorkloadSpec w = random.uniform() < 0.5 ? fake::closed_loop(12) : WorkloadSpec{};
    if (random.uniform() < 0.4) w.patience.total = Seconds(1.5);
    if (random.uniform() < 0.3) options.max_queue = 20;
    Watcher fast, plain;
    fake::Requests a(sent), b(sent);
    const ServingMetrics m = simulate(d, a, w, options, &fast);
    options.max_steps_per_event = 1;
    const ServingMetrics stepped = simulate(d, b, w, options, &plain);
    CHECK(m.completed + m.failed == 300);
    CHECK(m.cancelled + m.rejected + m.lost <= m.failed);
    CHECK(m.completed == static_cast<std::int64_t>(fast.requests.size()));
    CHECK(m.completed == stepped.completed);
    CHECK(m.requeued == stepped.requeued);
    CHECK(m.replica_failures == stepped.replica_failures);
    CHECK(m.replica_starts == stepped.replica_starts);
    CHECK(m.iterations == stepped.iterations);
    CHECK(m.replica_seconds == doctest::Approx(stepped.replica_seconds).epsilon(1e-9));
    CHECK(m.prefill_replica_seconds == doctest::Approx(stepped.prefill_replica_seconds).epsilon(1e-9));
    CHECK(fast.prefilled == plain.prefilled);
    REQUIRE(fast.requests.size() == plain.requests.size());
    for (const auto& [id, r] : fast.requests)
      REQUIRE(r.e2el.base() == doctest::Approx(plain.requests.at(id).e2el.base()).epsilon(1e-9));
  }
}

TEST_CASE("fleet: valid and invalid settings of a scenario") {
  const FleetSpec spec = parse("{max: 6, policy: queue, weights_bandwidth: 4 GB/s}", "{mtbf: 1000 h, repair: 2 h}");
  CHECK(spec.autoscaling->max == 6);
  CHECK(spec.autoscaling->target == 4);
  CHECK(spec.cold_start.base() == doctest::Approx(60 + 10));
  CHECK(spec.failures->mtbf == Seconds(3.6e6));
  CHECK(parse("{min: 0, max: 2}").autoscaling->min == 0);
  CHECK(parse("{max: 2, cold_start: 30 min}").cold_start == Seconds(1800));
  CHECK_FALSE(parse("", "").active());
  CHECK(error_of("{min: 3, max: 2}").find("'max' must be at least 'min', 3") != std::string::npos);
  CHECK(error_of("{min: 1}").find("'max'") != std::string::npos);
  CHECK(error_of("{max: 2, policy: gpu}").find("unknown policy 'gpu'") != std::string::npos);
  CHECK(error_of("{max: 2, policy: utilization, target: 30}").find("'target' must be between 0.01 and 1") !=
        std::string::npos);
  CHECK(error_of("{max: 2, interval: 0 s}").find("'interval' must be at least 0.1 s") != std::string::npos);
  CHECK(error_of("{max: 2, minimum: 1}").find("unknown key 'minimum'") != std::string::npos);
  CHECK(error_of("", "{repair: 1 h}").find("failures need 'mtbf' or 'events'") != std::string::npos);
  CHECK(error_of("", "{events: [{at: 1 s, replica: 4}]}").find("'replica' must be between 0 and 3") !=
        std::string::npos);
  CHECK(error_of("", "{events: [{replica: 1}]}").find("'at'") != std::string::npos);
}

TEST_CASE("autoscaling: workers that prefill and workers that decode are scaled by the load of each") {
  // 200 prompts a second of 1,000 tokens are twice what a prefill worker does at 10 us a token; they decode one token.
  fake::Requests prompts;
  for (int i = 0; i < 4000; ++i) prompts.add(i * 0.005, 1000, 2);
  Watcher seen;
  const ServingMetrics m = simulate(deployment(), prompts, {}, both_roles_scaled(), &seen);
  CHECK(m.completed == 4000);
  CHECK(m.most_prefill_replicas == 4);
  CHECK(m.prefill_replica_starts == 3);
  CHECK(m.most_replicas == 1);
  CHECK(m.replica_starts == 3);
  CHECK(m.replica_seconds == doctest::Approx(m.duration.base()));
  const auto most = std::max_element(seen.fleet.begin(), seen.fleet.end(),
                                     [](const auto& a, const auto& b) { return a.serving < b.serving; });
  CHECK(most->serving == 5);
  CHECK(most->prefill == 4);
  // 50 short prompts a second of 200 tokens each: 10 of them decode at once, at most four per worker.
  fake::Requests answers;
  for (int i = 0; i < 1000; ++i) answers.add(i * 0.02, 10, 200);
  const ServingMetrics n = simulate(deployment(), answers, {}, both_roles_scaled());
  CHECK(n.completed == 1000);
  CHECK(n.most_prefill_replicas == 1);
  CHECK(n.most_replicas == 4);
  CHECK(n.prefill_replica_seconds == doctest::Approx(n.duration.base()));
}

TEST_CASE("autoscaling: a prefill worker that stops is paid for until its caches are fetched") {
  // Six blocks of 16 tokens are prefilled after 1.96 ms, and their bytes take a second.
  fake::Requests requests;
  requests.add(0, 96, 50);
  ServingOptions options = both_roles_scaled();
  options.disaggregation->bandwidth = BytesPerSecond(96);
  options.fleet.prefill_autoscaling->min = 0;
  options.fleet.prefill_autoscaling->interval = Seconds(0.1);
  options.fleet.prefill_autoscaling->scale_down_delay = Seconds(0);
  const ServingMetrics m = simulate(deployment(), requests, {}, options);
  CHECK(m.completed == 1);
  CHECK(m.prefill_replica_seconds == doctest::Approx(1.00196).epsilon(1e-4));
  CHECK(m.duration > Seconds(1.04));
}

TEST_CASE("autoscaling: down to no decode workers, caches wait for a cold start where they were prefilled") {
  fake::Requests requests;
  requests.add(0, 100, 20).add(100, 100, 20);
  ServingOptions options = both_roles_scaled();
  options.fleet.autoscaling->min = 0;
  options.fleet.cold_start = Seconds(7);
  Watcher seen;
  const ServingMetrics m = simulate(deployment(), requests, {}, options, &seen);
  CHECK(m.completed == 2);
  CHECK(m.replica_starts == 1);
  // Sent at 100 s and prefilled at once; the decision of 101 s starts a worker, which serves at 108 s.
  CHECK(seen.requests[1].e2el.base() == doctest::Approx(8).epsilon(0.01));
  CHECK(seen.requests[0].e2el < Seconds(0.1));
}

TEST_CASE("autoscaling: disaggregated workers with min equal to max equal a fixed fleet, to the last digit") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    fake::Requests requests, again;
    double now = 0;
    for (int i = 0; i < 300; ++i) {
      now += random.exponential(0.004);
      const int prompt = static_cast<int>(random.uniform_integer(1, 300)),
                output = static_cast<int>(random.uniform_integer(1, 60));
      requests.add(now, prompt, output), again.add(now, prompt, output);
    }
    ServingOptions options = both_roles_scaled();
    options.disaggregation->bandwidth = BytesPerSecond(1e5);
    options.disaggregation->prefill_replicas = 2;
    options.replicas = 3;
    options.fleet.autoscaling->min = options.fleet.autoscaling->max = 3;
    options.fleet.prefill_autoscaling->min = options.fleet.prefill_autoscaling->max = 2;
    Watcher scaled, fixed;
    const ServingMetrics m = simulate(deployment(), requests, {}, options, &scaled);
    options.fleet = {};
    const ServingMetrics n = simulate(deployment(), again, {}, options, &fixed);
    CHECK(m.completed == 300);
    CHECK(m.duration == n.duration);
    CHECK(m.gpu_busy_seconds == n.gpu_busy_seconds);
    CHECK(m.replica_starts == 0);
    REQUIRE(scaled.requests.size() == fixed.requests.size());
    for (const auto& [id, r] : scaled.requests) {
      REQUIRE(r.ttft == fixed.requests.at(id).ttft);
      REQUIRE(r.e2el == fixed.requests.at(id).e2el);
    }
  }
}

TEST_CASE("autoscaling: with memory for all caches, disaggregated workers compute every token once") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    fake::Requests requests;
    double now = 0, prompts = 0, outputs = 0;
    for (int i = 0; i < 200; ++i) {
      now += random.exponential(random.uniform() < 0.05 ? 1.0 : 0.005);
      const int prompt = static_cast<int>(random.uniform_integer(1, 300)),
                output = static_cast<int>(random.uniform_integer(1, 60));
      requests.add(now, prompt, output);
      prompts += prompt, outputs += output;
    }
    ServingOptions options = both_roles_scaled();
    options.router = random.uniform() < 0.5 ? "round_robin" : "least_loaded";
    options.disaggregation->bandwidth = BytesPerSecond(random.uniform() < 0.5 ? 1e4 : 1e6);
    options.fleet.autoscaling = random_scaling(random);
    if (random.uniform() < 0.7) options.fleet.prefill_autoscaling = random_scaling(random);
    options.fleet.cold_start = Seconds(0.25);
    Watcher seen;
    const ServingMetrics m = simulate(deployment(), requests, {}, options, &seen);
    CHECK(m.completed == 200);
    CHECK(m.failed == 0);
    CHECK(m.input_tokens == prompts);
    CHECK(m.output_tokens == outputs);
    CHECK(seen.prefilled == prompts);
    CHECK(seen.decoded == outputs - 200);  // the first token of each comes from its prefill
  }
}
