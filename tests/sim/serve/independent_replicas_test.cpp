// Replicas that do not meet: the same to the last digit side by side as in one queue of events.
#include <future>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/serve/independent_replicas.h"
#include "sim/step/deployment.h"
#include "tests/sim/serve/fake.h"

using namespace roofcast;

namespace {

/// Tasks on threads of their own, so many at a time.
Cores threads(int count) {
  return {.count = count, .run = [count](std::size_t n, const std::function<void(std::size_t)>& task) {
            std::vector<std::future<void>> under_way;
            for (int t = 0; t < count; ++t) {
              under_way.push_back(std::async(std::launch::async, [&, t] {
                for (auto i = static_cast<std::size_t>(t); i < n; i += static_cast<std::size_t>(count)) task(i);
              }));
            }
            for (auto& thread : under_way) thread.get();
          }};
}

using Numbers = std::vector<double>;

/// All that an observer is told, in the order in which it is.
struct Told final : Observer {
  explicit Told(std::size_t most) : most(most) {}
  void on_step(const StepRecord& s) override {
    for (const double number : {double(s.replica), s.start.base(), s.end.base(), double(s.steps), double(s.decodes),
                                double(s.prefills), double(s.prefill_tokens), double(s.waiting), s.kv_usage})
      numbers.push_back(number);
  }
  void on_request(const RequestRecord& r) override {
    ++requests;
    for (const double number : {double(r.id), double(r.replica), r.arrival.base(), r.queue.base(), r.ttft.base(),
                                r.e2el.base(), double(r.cached_tokens), double(r.preemptions), double(r.client)})
      numbers.push_back(number);
  }
  bool enough() const override { return requests >= most; }
  Numbers numbers;
  std::size_t requests = 0, most;
};

void add(Numbers& out, const Distribution& d) {
  for (const double number : {d.count(), d.mean(), d.stddev(), d.min(), d.max()}) out.push_back(number);
  for (int p = 0; p <= 100; p += 5) out.push_back(d.percentile(p));
}

Numbers numbers_of(const ServingMetrics& m) {
  Numbers out{m.duration.base(),
              m.load.offered.base(),
              double(m.load.saturated),
              double(m.completed),
              double(m.failed),
              double(m.cancelled),
              double(m.rejected),
              m.cancelled_tokens,
              m.input_tokens,
              m.output_tokens,
              m.good_requests,
              double(m.iterations),
              double(m.preemptions),
              m.cached_tokens,
              m.offload_loaded_tokens,
              m.offload_loaded_bytes,
              m.offload_stored_bytes,
              m.gpu_busy_seconds,
              m.flops,
              m.bytes,
              m.front_end_seconds,
              m.kv_peak_usage,
              m.kv_held,
              m.kv_filled,
              m.computed_tokens,
              m.padding_tokens,
              m.drafted_tokens,
              m.accepted_tokens};
  for (const Distribution* d : {&m.ttft_ms, &m.tpot_ms, &m.itl_ms, &m.e2el_ms, &m.queue_ms, &m.ttfat_ms}) add(out, *d);
  return out;
}

template <class T>
T one_of(Random& random, std::initializer_list<T> values) {
  return values.begin()[random.uniform_integer(0, static_cast<std::int64_t>(values.size()) - 1)];
}

struct Case {
  std::shared_ptr<Deployment> deployment;
  WorkloadSpec workload;
  ServingOptions options;
  std::size_t most = std::size_t{1} << 40;
};

LengthSpec length(Random& random, int longest) {
  if (random.uniform() < 0.5) return {.law = LengthSpec::Fixed{longest}};
  return {.law = LengthSpec::Uniform{1, longest}};
}

Case draw(std::uint64_t seed) {
  Random random(seed);
  Case c;
  c.deployment = fake::deployment(one_of(random, {900.0, 3000.0, 30000.0}));
  EngineSpec& e = c.deployment->engine;
  e.scheduler = one_of(random, {"decode_first", "prefill_first", "mixed_chunk", "no_evict"});
  e.max_num_seqs = one_of(random, {4, 16, 64});
  e.max_num_batched_tokens = one_of(random, {200, 1000});
  e.block_size = one_of(random, {1, 16});
  e.max_model_len = 500;
  e.preemption = one_of(random, {"recompute", "swap"});
  e.stream_interval = one_of(random, {1, 7});
  e.async_scheduling = random.uniform() < 0.5;
  e.prefix_caching = random.uniform() < 0.5;
  if (e.prefix_caching) e.kv_offload = Bytes(one_of(random, {0.0, 300.0}));
  e.host.request_time = Seconds(one_of(random, {0.0, 1e-3}));
  e.host.token_time = Seconds(one_of(random, {0.0, 40e-6}));
  if (random.uniform() < 0.3) c.deployment->sharding.attention_dp = 3;
  fake::StepLaw law;
  c.options = fake::options(law);
  c.options.seed = seed;
  c.options.replicas = one_of(random, {2, 3, 8});
  c.options.router = one_of(random, {"round_robin", "consistent_hash"});
  c.options.policy = one_of(random, {"fcfs", "priority", "shortest_first"});
  if (random.uniform() < 0.3) c.options.max_queue = one_of(random, {1, 5});
  if (random.uniform() < 0.2)
    c.options.speculation = {
        .method = SpeculationSpec::Method::kEagle, .num_speculative_tokens = 3, .acceptance = {0.8, 0.6}};
  WorkloadSpec& w = c.workload;
  using Process = ArrivalSpec::Process;
  // A constant rate and equal lengths make events of different replicas fall together.
  w.arrivals.process = one_of(random, {Process::kPoisson, Process::kConstant, Process::kGamma});
  w.arrivals.rate = PerSecond(one_of(random, {20.0, 100.0, 1000.0}) * c.options.replicas);
  w.prompt_tokens = length(random, one_of(random, {1, 64, 300}));
  w.output_tokens = length(random, one_of(random, {1, 20, 100}));
  w.requests = one_of(random, {30, 600, 9000});
  w.warmup_requests = one_of(random, {0, 20});
  if (random.uniform() < 0.4) w.priorities = {0.5, 0.5};
  if (random.uniform() < 0.4) {
    w.patience.first_token = one_of<std::optional<Seconds>>(random, {std::nullopt, Seconds(0.05), Seconds(1)});
    w.patience.total = one_of<std::optional<Seconds>>(random, {std::nullopt, Seconds(0.1), Seconds(2)});
  }
  if (random.uniform() < 0.2) c.most = 25;
  return c;
}

std::pair<Numbers, Numbers> play(const Case& c, const Cores& cores) {
  ServingOptions options = c.options;
  options.cores = cores;
  Told told(c.most);
  Numbers metrics = numbers_of(simulate(c.deployment, c.workload, options, &told));
  return {std::move(metrics), std::move(told.numbers)};
}

}  // namespace

TEST_CASE("independent replicas: the same numbers in the same order on any number of cores") {
  const char* many = std::getenv("ROOFCAST_SCENARIOS");
  const int count = many == nullptr ? 40 : std::atoi(many);
  int together = 0;
  for (int seed = 0; seed < count; ++seed) {
    INFO("seed " << seed);
    const Case c = draw(static_cast<std::uint64_t>(seed));
    const auto alone = play(c, Cores{});
    for (const int cores : {2, 8}) {
      INFO("cores " << cores);
      ServingOptions options = c.options;
      options.cores = threads(cores);
      REQUIRE(replicas_are_independent(*c.deployment, c.workload, options));
      const auto [metrics, told] = play(c, options.cores);
      CHECK((metrics == alone.first));
      CHECK((told == alone.second));
    }
    together += alone.second.size() > 1000 ? 1 : 0;
  }
  CHECK(together > count / 4);  // most say something
}

TEST_CASE("independent replicas: dependent ones are simulated with one event queue") {
  Case c = draw(1);
  c.options.cores = threads(2);
  c.options.replicas = 4;
  c.options.router = "round_robin";
  const auto apart = [](const Case& some) {
    return replicas_are_independent(*some.deployment, some.workload, some.options);
  };
  REQUIRE(apart(c));
  Case other = c;
  other.options.cores = {};
  CHECK_FALSE(apart(other));
  other = c, other.options.replicas = 1;
  CHECK_FALSE(apart(other));
  other = c, other.options.router = "least_loaded";
  CHECK_FALSE(apart(other));
  other = c, other.workload.arrivals.process = ArrivalSpec::Process::kClosedLoop;
  CHECK_FALSE(apart(other));
  other = c, other.workload.shared_prefix_tokens = 16;
  CHECK_FALSE(apart(other));
  other = c, other.workload.turns = 2;
  CHECK_FALSE(apart(other));
  other = c, other.options.fleet.autoscaling = AutoscalingSpec{};
  CHECK_FALSE(apart(other));
  other = c, other.options.disaggregation = Disaggregation{.prefill = c.deployment};
  CHECK_FALSE(apart(other));
}
