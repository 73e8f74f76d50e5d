// Static batches and the room that caches waste, against simulators that are written apart and step by step.
#include <doctest/doctest.h>

#include <algorithm>

#include "sim/step/deployment.h"
#include "tests/scenarios.h"
#include "tests/sim/serve/fake.h"

using namespace roofcast;

namespace {

struct Job {
  double arrival;
  int prompt, output;
  double first = 0, end = 0;  ///< to be found out
};

struct StaticRules {
  std::size_t slots = 1;
  double wait = 0;       ///< s, of the first of a batch
  double front_end = 0;  ///< s, for which each request keeps it busy
  bool cache = true;
  fake::StepLaw law;
};

/// Waits for `slots` jobs or until those are there that were sent before the first had waited for `wait`; pads prompts
/// and rows to the longest; answers all of a batch when its last row has ended. A step takes law.fixed + law.token a
/// token + law.context a cached token; without a cache every row is computed from its beginning. Returns the share of
/// padding.
double run_static(std::vector<Job>& jobs, const StaticRules& rules) {
  const fake::StepLaw& law = rules.law;
  std::vector<double> ready;
  for (const Job& job : jobs)
    ready.push_back(std::max(job.arrival, ready.empty() ? 0.0 : ready.back()) + rules.front_end);
  double now = 0, padded = 0, computed = 0;
  for (std::size_t next = 0; next < jobs.size();) {
    const double due = jobs[next].arrival + rules.wait;
    double start = due;
    for (std::size_t i = next; i < jobs.size() && jobs[i].arrival <= due; ++i) start = std::max(start, ready[i]);
    if (next + rules.slots <= jobs.size()) start = std::min(start, ready[next + rules.slots - 1]);
    now = std::max(now, start);
    std::size_t end = next;
    while (end < jobs.size() && end < next + rules.slots && ready[end] <= now) ++end;
    int longest = 0, outputs = 0;
    for (std::size_t i = next; i < end; ++i) {
      longest = std::max(longest, jobs[i].prompt);
      outputs = std::max(outputs, jobs[i].output);
    }
    const double rows = static_cast<double>(end - next);
    now += law.fixed + law.token * rows * longest;
    computed += rows * longest;
    for (std::size_t i = next; i < end; ++i) jobs[i].first = now, padded += longest - jobs[i].prompt;
    for (int step = 1; step < outputs; ++step) {
      const double a_row = rules.cache ? 1 : longest + step;
      now += law.fixed + law.token * rows * a_row;
      if (rules.cache) now += law.context * rows * (longest + step - 1);
      computed += rows * a_row;
      for (std::size_t i = next; i < end; ++i) {
        if (step >= jobs[i].output)
          padded += a_row;
        else if (!rules.cache)
          padded += longest - jobs[i].prompt;
      }
    }
    for (std::size_t i = next; i < end; ++i) jobs[i].end = now;
    next = end;
  }
  return padded / computed;
}

}  // namespace

TEST_CASE("static: 300 random loads equal a simulator of padded tensors") {
  Random random(11);
  const auto pick = [&](int low, int high) { return static_cast<int>(random.uniform_integer(low, high)); };
  for (int n = 0; n < scenarios(300); ++n) {
    const StaticRules rules{.slots = static_cast<std::size_t>(pick(1, 6)),
                            .wait = pick(0, 2) * 0.4,
                            .front_end = pick(0, 2) * 0.0123,
                            .cache = pick(0, 2) > 0,
                            .law = {.fixed = 1e-3, .token = 1e-5, .context = 1e-8}};
    const double gap = pick(1, 3) * 0.05;
    std::vector<Job> jobs;
    fake::Requests source;
    double at = 0;
    for (int i = 0; i < pick(1, 25); ++i) {
      if (random.uniform() < 0.7) at += random.exponential(gap);  // some arrive together
      jobs.push_back({at, pick(1, 200), pick(1, 60)});
      source.add(at, jobs.back().prompt, jobs.back().output);
    }
    const double padding = run_static(jobs, rules);
    const auto d = fake::deployment(1e6);
    d->engine.scheduler = "static";
    d->engine.kv_cache = rules.cache;
    d->engine.max_num_seqs = static_cast<int>(rules.slots);
    d->engine.max_num_batched_tokens = 1 << 20;
    d->engine.batch_wait = Seconds(rules.wait);
    d->engine.host.request_time = Seconds(rules.front_end);
    fake::Recorder seen;
    const ServingMetrics m = simulate(d, source, {}, fake::options(rules.law), &seen);
    REQUIRE(seen.requests.size() == jobs.size());
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const RequestRecord& r = seen.requests[static_cast<std::int64_t>(i)];
      INFO(n, " request ", i, " slots ", rules.slots, " wait ", rules.wait, " cache ", rules.cache);
      REQUIRE(std::abs(r.ttft.base() - (jobs[i].first - jobs[i].arrival)) < 1e-9);
      REQUIRE(std::abs(r.e2el.base() - (jobs[i].end - jobs[i].arrival)) < 1e-9);
    }
    REQUIRE(m.padding_tokens / m.computed_tokens == doctest::Approx(padding).epsilon(1e-9));
  }
}

TEST_CASE("static: a front end that hands requests over one by one breaks no batch up") {
  const auto d = fake::deployment(1e6);
  d->engine.scheduler = "static";
  d->engine.max_num_seqs = 2;
  d->engine.host.request_time = Seconds(0.01);
  fake::Requests source;
  source.add(0, 100, 500).add(0, 100, 10);
  fake::Recorder seen;
  simulate(d, source, {}, fake::options(), &seen);
  // Both are there after 20 ms, one prefill answers both first, and the longer one's end both last.
  CHECK(seen.requests[0].ttft == seen.requests[1].ttft);
  CHECK(seen.requests[0].e2el == seen.requests[1].e2el);
  CHECK(seen.requests[0].ttft.in(kMillisecond) == doctest::Approx(20 + 1 + 200 * 0.01));
}

TEST_CASE("cache waste: blocks waste their last part, contiguous caches the unused rest") {
  // One at a time, equal steps. Step by step a request holds p, p + 1, ... p + o - 1 tokens in so many blocks.
  Random random(3);
  for (int n = 0; n < 100; ++n) {
    const int block = std::vector{0, 1, 16, 64}[static_cast<std::size_t>(random.uniform_integer(0, 3))];
    const auto d = fake::deployment(1e6);
    d->engine.block_size = block;
    d->engine.max_model_len = 600;
    fake::Requests source;
    double held = 0, filled = 0;
    for (int i = 0; i < 5; ++i) {
      const int prompt = static_cast<int>(random.uniform_integer(1, 300)),
                output = static_cast<int>(random.uniform_integer(1, 250));
      source.add(10.0 * i, prompt, output);
      for (int tokens = prompt; tokens < prompt + output; ++tokens) {
        filled += tokens;
        held += block == 0 ? 600 : (tokens + block - 1) / block * block;
      }
    }
    const ServingMetrics m = simulate(d, source, {}, fake::options({.fixed = 1e-3, .token = 0, .context = 0}));
    INFO(n, " block ", block);
    // Within a run of steps blocks are taken evenly: half a block of the longest run is the most that this misses.
    CHECK(1 - m.kv_filled / m.kv_held == doctest::Approx(1 - filled / held).epsilon(block == 0 ? 1e-9 : 0.1));
    if (block == 1) CHECK(std::abs(1 - m.kv_filled / m.kv_held) < 1e-12);
    CHECK(m.padding_tokens == 0);
  }
}

TEST_CASE("cache waste: what a warm-up holds is not counted") {
  const auto d = fake::deployment(1e6);
  d->engine.block_size = 0;
  d->engine.max_model_len = 600;
  fake::Requests both, alone;
  both.add(0, 10, 20).add(5, 200, 300);
  alone.add(5, 200, 300);
  WorkloadSpec one_warm;
  one_warm.warmup_requests = 1;
  const ServingMetrics with = simulate(d, both, one_warm, fake::options()),
                       without = simulate(d, alone, {}, fake::options());
  CHECK(with.kv_held == doctest::Approx(without.kv_held).epsilon(1e-9));
  CHECK(with.kv_filled == doctest::Approx(without.kv_filled).epsilon(1e-9));
  CHECK(with.computed_tokens == without.computed_tokens);
}
