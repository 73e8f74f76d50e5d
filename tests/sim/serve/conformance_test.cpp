// Invariants of every scheduler, over random scenarios.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/step/deployment.h"
#include "tests/sim/serve/fake.h"

using namespace roofcast;

namespace {

constexpr std::uint64_t kScenarios = 60;

struct Scenario {
  std::shared_ptr<Deployment> deployment;
  WorkloadSpec workload;
  ServingOptions options = fake::options();
  std::vector<Request> requests;
};

template <class T>
T one_of(Random& random, std::initializer_list<T> values) {
  return values.begin()[random.uniform_integer(0, static_cast<std::int64_t>(values.size()) - 1)];
}

void draw_engine(EngineSpec& e, Random& random) {
  e.max_num_seqs = one_of(random, {1, 4, 16, 64});
  e.max_num_batched_tokens = one_of(random, {64, 200, 1000});
  e.chunked_prefill = random.uniform() < 0.7;
  e.block_size = one_of(random, {1, 4, 16, 16, 0});
  e.max_model_len = 500;
  e.watermark = one_of(random, {0.0, 0.0, 0.05});
  e.preemption = one_of(random, {"recompute", "swap"});
  e.stream_interval = one_of(random, {1, 1, 7});
  e.async_scheduling = random.uniform() < 0.3;
  e.scheduler_launches = random.uniform() < 0.5;
  e.receive_interval = one_of(random, {1, 1, 5});
  e.prefill_wait_steps = one_of(random, {0, 0, 12});
  e.prefill_wait_ratio = 0.6;
  e.reserve_output_ratio = one_of(random, {0.3, 0.6, 1.0});
  e.prefix_caching = random.uniform() < 0.4;
  if (e.prefix_caching) e.kv_offload = Bytes(one_of(random, {0.0, 300.0, 1e6}));
  e.host.request_time = Seconds(one_of(random, {0.0, 1e-3}));
  e.host.token_time = Seconds(one_of(random, {0.0, 0.0, 40e-6, 400e-6}));
}

/// Prompts share a prefix of 0 to 8 blocks of 16 tokens with one of three others.
void draw_requests(Scenario& s, Random& random) {
  double at = 0;
  const double gap = one_of(random, {0.0, 2e-3, 20e-3, 200e-3});
  for (int i = 0; i < 120; ++i) {
    Request r;
    r.id = i;
    r.arrival = Seconds(at);
    if (gap > 0) at += random.exponential(gap);
    r.priority = i % 3;
    r.prompt_tokens = static_cast<int>(random.uniform_integer(1, 300));
    r.output_tokens = static_cast<int>(random.uniform_integer(1, 100));
    const std::int64_t shared = random.uniform_integer(0, 8), group = random.uniform_integer(0, 2);
    for (int b = 0; b < std::min<std::int64_t>(shared, r.prompt_tokens / 16); ++b)
      r.prefix_blocks.push_back(static_cast<std::uint64_t>(100 * group + b));
    r.prefix_block_tokens = 16;
    s.requests.push_back(r);
  }
  if (random.uniform() < 0.5) {
    s.workload = fake::closed_loop(one_of(random, {1, 8, 40}));
    s.workload.arrivals.think_time = Seconds(one_of(random, {0.0, 5e-3}));
    s.workload.warmup_requests = one_of(random, {0, 10});
  }
}

Scenario draw(std::string_view scheduler, std::uint64_t seed) {
  Random random(seed);
  Scenario s;
  s.deployment = fake::deployment(one_of(random, {450.0, 900.0, 3000.0, 30000.0}));
  draw_engine(s.deployment->engine, random);
  s.deployment->engine.scheduler = scheduler;
  fake::StepLaw law;
  law.launched = one_of(random, {0.0, 0.7e-3, 1e-3});
  law.prefill_launched = one_of(random, {0.0, 0.5e-3, 1e-3});
  s.options = fake::options(law);
  if (random.uniform() < 0.3) {
    s.deployment->sharding.attention_dp = 3;
    s.deployment->engine.attention_dp_balance = true;
  }
  if (random.uniform() < 0.4) {
    s.deployment->memory.layout.groups = {{Bytes(1), 0}, {Bytes(2), 40}, {Bytes(1), 100}};
    s.deployment->memory.cache = s.deployment->memory.cache * 3.0;
  }
  if (random.uniform() < 0.2) s.deployment->memory.layout.state_per_sequence = Bytes(30);
  s.options.policy = one_of(random, {"fcfs", "fcfs", "priority", "shortest_first"});
  if (random.uniform() < 0.15) {
    s.options.speculation = {
        .method = SpeculationSpec::Method::kEagle, .num_speculative_tokens = 3, .acceptance = {0.8, 0.6}};
  }
  draw_requests(s, random);
  if (random.uniform() < 0.4) {
    s.workload.patience.first_token =
        one_of<std::optional<Seconds>>(random, {std::nullopt, Seconds(0.03), Seconds(0.3)});
    s.workload.patience.total = one_of<std::optional<Seconds>>(random, {std::nullopt, Seconds(0.08), Seconds(0.5)});
  }
  if (random.uniform() < 0.2) s.options.max_queue = one_of(random, {1, 5, 30});
  s.options.replicas = one_of(random, {1, 1, 2, 3});
  s.options.router = one_of(random, {"round_robin", "least_loaded", "prefix_aware", "kv_aware", "consistent_hash"});
  if (make_scheduler(std::string(scheduler))->continuous() && random.uniform() < 0.2) {
    const auto prefill = std::make_shared<Deployment>(*s.deployment);
    prefill->engine.max_num_seqs = 4;
    s.options.disaggregation = {.prefill = prefill,
                                .prefill_replicas = one_of(random, {1, 2}),
                                .bandwidth = BytesPerSecond(1e5),
                                .latency = Seconds(one_of(random, {0.0, 1e-3}))};
  }
  s.deployment->engine.prompt_must_fit = random.uniform() < 0.4;
  return s;
}

std::string describe(const Scenario& s) {
  const EngineSpec& e = s.deployment->engine;
  return fmt::format(
      "seqs {} budget {} chunked {} block {} watermark {} {} stream {} async {} launches {} receive {} wait {} prefix "
      "{} "
      "token_us {} cache {} policy {} users {} warmup {} spec {} groups {} replicas {} {} disagg {} patience {} {} "
      "queue {} offload {} ranks {} must_fit {}",
      e.max_num_seqs, e.max_num_batched_tokens, e.chunked_prefill, e.block_size, e.watermark, e.preemption,
      e.stream_interval, e.async_scheduling, e.scheduler_launches, e.receive_interval, e.prefill_wait_steps,
      e.prefix_caching, e.host.token_time.in(kMicrosecond), s.deployment->memory.cache.base(), s.options.policy,
      s.workload.arrivals.concurrency, s.workload.warmup_requests, s.options.speculation.active(),
      s.deployment->memory.layout.groups.size(), s.options.replicas, s.options.router,
      s.options.disaggregation.has_value(), s.workload.patience.first_token.value_or(Seconds(0)).base(),
      s.workload.patience.total.value_or(Seconds(0)).base(), s.options.max_queue, e.kv_offload.base(),
      s.deployment->sharding.attention_dp, e.prompt_must_fit);
}

ServingMetrics play(const Scenario& s, fake::Recorder& seen, std::int64_t steps_per_event) {
  ServingOptions options = s.options;
  options.max_steps_per_event = steps_per_event;
  fake::Requests source(s.requests);
  return simulate(s.deployment, source, s.workload, options, &seen);
}

void check_steps(const Scenario& s, const fake::Recorder& seen) {
  std::map<int, Seconds> last;
  const EngineSpec& e = s.deployment->engine;
  const int ranks = s.deployment->sharding.attention_dp;  // limits are a rank's
  for (const StepRecord& step : seen.steps) {
    REQUIRE(step.start >= last[step.replica]);
    REQUIRE(step.end > step.start);
    REQUIRE(step.decodes <= e.max_num_seqs * ranks);
    REQUIRE(step.decodes + step.prefills > 0);
    REQUIRE(step.kv_usage <= 1.0);
    if (e.chunked_prefill) REQUIRE(step.prefill_tokens <= e.max_num_batched_tokens * ranks);
    last[step.replica] = step.end;
  }
}

void check_requests(const Scenario& s, const fake::Recorder& seen, const ServingMetrics& m) {
  const auto counted = static_cast<std::int64_t>(s.requests.size()) - s.workload.warmup_requests;
  REQUIRE(m.completed + m.failed == counted);
  REQUIRE(static_cast<std::int64_t>(seen.requests.size()) == m.completed);
  double prompts = 0, outputs = 0;
  for (const auto& [id, r] : seen.requests) {
    const Request& sent = s.requests[static_cast<std::size_t>(id)];
    REQUIRE(r.prompt_tokens == sent.prompt_tokens);
    REQUIRE(r.output_tokens == sent.output_tokens);
    REQUIRE(r.cached_tokens < r.prompt_tokens);
    REQUIRE(r.queue >= Seconds(0));
    REQUIRE(r.ttft > r.queue);
    REQUIRE(r.e2el >= r.ttft);
    if (s.workload.patience.total) REQUIRE(r.e2el <= *s.workload.patience.total);
    if (s.workload.patience.first_token) REQUIRE(r.ttft <= *s.workload.patience.first_token);
    prompts += r.prompt_tokens;
    outputs += r.output_tokens;
  }
  CHECK(m.cancelled + m.rejected <= m.failed);
  CHECK(m.input_tokens == prompts);
  CHECK(m.output_tokens == outputs);
}

void check_alike(const fake::Recorder& fast, const fake::Recorder& plain) {
  REQUIRE(fast.requests.size() == plain.requests.size());
  for (const auto& [id, r] : fast.requests) {
    const RequestRecord& p = plain.requests.at(id);
    REQUIRE(r.ttft.base() == doctest::Approx(p.ttft.base()).epsilon(1e-9));
    REQUIRE(r.e2el.base() == doctest::Approx(p.e2el.base()).epsilon(1e-9));
    REQUIRE(r.queue.base() == doctest::Approx(p.queue.base()).epsilon(1e-9));
    REQUIRE(r.preemptions == p.preemptions);
    REQUIRE(r.cached_tokens == p.cached_tokens);
  }
}

}  // namespace

TEST_CASE("schedulers: tokens, time and limits are conserved, and runs equal single steps") {
  for (const SchedulerKind& kind : schedulers()) {
    for (std::uint64_t seed = 1; seed <= kScenarios; ++seed) {
      CAPTURE(kind.name);
      CAPTURE(seed);
      const Scenario s = draw(kind.name, seed);
      const std::string scenario = describe(s);
      CAPTURE(scenario);
      // Evictions of a run are seen at its end, so a router that looks at caches may choose otherwise meanwhile.
      const bool by_cache = s.options.router == "prefix_aware" || s.options.router == "kv_aware";
      const bool looks_inside = by_cache && s.deployment->engine.prefix_caching;
      fake::Recorder fast, plain, again;
      const ServingMetrics m = play(s, fast, std::int64_t{1} << 40);
      check_steps(s, fast);
      check_requests(s, fast, m);
      const ServingMetrics same = play(s, again, std::int64_t{1} << 40);
      CHECK(same.duration == m.duration);
      CHECK(same.itl_ms.percentile(99) == m.itl_ms.percentile(99));
      if (looks_inside) continue;
      const ServingMetrics stepped = play(s, plain, 1);
      check_steps(s, plain);
      check_alike(fast, plain);
      CHECK(m.iterations == stepped.iterations);
      CHECK(m.preemptions == stepped.preemptions);
      CHECK(m.cancelled == stepped.cancelled);
      CHECK(m.rejected == stepped.rejected);
      CHECK(m.cancelled_tokens == stepped.cancelled_tokens);
      CHECK(m.itl_ms.mean() ==
            doctest::Approx(stepped.itl_ms.mean()).epsilon(s.deployment->engine.stream_interval > 1 ? 0.05 : 1e-6));
      if (s.deployment->engine.stream_interval == 1) CHECK(m.itl_ms.count() == doctest::Approx(stepped.itl_ms.count()));
    }
  }
}
