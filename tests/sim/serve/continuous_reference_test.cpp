// Continuous batching, chunked prefill, blocks and preemption against an independent simulator: it runs step
// by step, and visits every sequence in each.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include "sim/step/deployment.h"
#include "tests/scenarios.h"
#include "tests/sim/serve/continuous_reference.h"

using namespace roofcast;
using reference::Engine, reference::Rules, reference::Sequence;

namespace {

struct Load {
  Rules rules;
  std::string scheduler;
  std::vector<Sequence> sequences;
};

Load random_load(Random& random) {
  const auto pick = [&](int low, int high) { return static_cast<int>(random.uniform_integer(low, high)); };
  const auto one_of = [&](std::initializer_list<int> values) {
    return values.begin()[pick(0, static_cast<int>(values.size()) - 1)];
  };
  Load load;
  Rules& r = load.rules;
  load.scheduler = std::vector{"decode_first", "decode_first", "prefill_first",
                               "mixed_chunk",  "no_evict",     "prefill_no_evict"}[static_cast<std::size_t>(
      pick(0, 5))];
  r.prompts_first = load.scheduler == "prefill_first" || load.scheduler == "prefill_no_evict";
  if (load.scheduler == "prefill_first" || load.scheduler == "mixed_chunk") r.reserved = 0.1 * pick(1, 10);
  if (load.scheduler == "no_evict" || load.scheduler == "prefill_no_evict") r.reserved = 1.0;
  r.swap = pick(0, 1) == 1;
  r.fewest_outputs = pick(0, 1) == 1;
  r.block = one_of({0, 1, 1, 4, 16, 16, 64});
  r.places = one_of({1, 2, 3, 5, 8, 20});
  r.whole_prompt = pick(0, 3) == 0;
  r.chunks = pick(0, 4) > 0;
  const int longest_prompt = one_of({20, 100, 300}), longest_output = one_of({1, 10, 60, 200});
  r.budget = r.chunks ? one_of({1, 7, 32, 100, 512}) : longest_prompt + pick(0, 200);
  r.slot = longest_prompt + longest_output + pick(0, 50);
  r.free_share = pick(0, 2) == 0 ? 0.05 : 0.0;
  const int largest = std::max(r.slot, longest_prompt + longest_output + 64);
  r.capacity = largest + r.block * pick(0, 20);
  if (pick(0, 1) == 1) {
    r.window = one_of({1, 5, 16, 17, 64, 150, 1000}), r.window_bytes = pick(1, 3);
    r.capacity += r.window_bytes * (std::min<double>(largest, r.window) + 2 * r.block);
  }
  r.law = {.fixed = 1e-3, .token = pick(0, 1) * 1e-5, .context = pick(0, 1) * 1e-7};
  if (pick(0, 2) == 0) {
    r.drafts = pick(1, 5);
    r.accepted = pick(0, 1) == 1;
    r.draft_time = 1e-4;
  }
  double at = 0;
  const double gap = 0.001 * one_of({0, 1, 10, 100});
  for (int i = pick(1, 30); i > 0; --i) {
    if (random.uniform() < 0.8) at += random.exponential(gap);  // some arrive together
    Sequence s;
    s.arrival = at;
    s.target = s.prompt = pick(1, longest_prompt);
    s.output = pick(1, longest_output);
    load.sequences.push_back(s);
  }
  if (pick(0, 3) == 0) {  // the largest one fits exactly
    r.capacity = 0;
    for (const Sequence& s : load.sequences)
      r.capacity = std::max(r.capacity, reference::room_of(r, s.prompt + s.output));
  }
  return load;
}

void add_window(Deployment& d, const Rules& r) {
  if (r.window_bytes == 0) return;
  d.memory.layout.groups.push_back({.bytes_per_token = Bytes(r.window_bytes), .window = static_cast<double>(r.window)});
}

}  // namespace

TEST_CASE("continuous batching: random loads equal a simulator of single steps") {
  Random random(24);
  int preempted = 0;
  const int n = scenarios(150);
  for (int i = 0; i < n; ++i) {
    Load load = random_load(random);
    const Rules& r = load.rules;
    const auto d = fake::deployment(r.capacity);
    add_window(*d, r);
    d->engine.scheduler = load.scheduler;
    d->engine.preemption = r.swap ? "swap" : "recompute";
    d->engine.victim = r.fewest_outputs ? Victim::kFewestOutputs : Victim::kNewest;
    d->engine.chunked_prefill = r.chunks;
    d->engine.prompt_must_fit = r.whole_prompt;
    d->engine.reserve_output_ratio = r.reserved;
    d->engine.watermark = r.free_share;
    d->engine.max_num_batched_tokens = r.budget;
    d->engine.max_num_seqs = r.places;
    d->engine.block_size = r.block;
    d->engine.max_model_len = r.slot;
    fake::Requests source;
    for (const Sequence& s : load.sequences) source.add(s.arrival, s.prompt, s.output);
    Engine engine(r);
    run_alone(engine, load.sequences);
    for (const bool single_steps : {true, false}) {
      fake::Requests again = source;
      fake::Recorder seen;
      ServingOptions options = fake::options(r.law);
      if (single_steps) options.max_steps_per_event = 1;
      if (r.drafts > 0) {
        options.speculation = {.method = SpeculationSpec::Method::kNgram,
                               .num_speculative_tokens = r.drafts,
                               .acceptance = {r.accepted ? 1.0 : 0.0},
                               .draft_time = Seconds(r.draft_time)};
      }
      const ServingMetrics m = simulate(d, again, {}, options, &seen);
      const std::string which = fmt::format(
          "{} {} fewest {} swap {} block {} budget {} places {} chunks {} whole {} reserved {} capacity {} drafts {} "
          "single {}",
          i, load.scheduler, r.fewest_outputs, r.swap, r.block, r.budget, r.places, r.chunks, r.whole_prompt,
          r.reserved, r.capacity, r.drafts, single_steps);
      INFO(which);
      REQUIRE(seen.requests.size() == load.sequences.size());
      for (std::size_t k = 0; k < load.sequences.size(); ++k) {
        const Sequence& s = load.sequences[k];
        const RequestRecord& got = seen.requests[static_cast<std::int64_t>(k)];
        INFO("request ", k, " prompt ", s.prompt, " output ", s.output);
        REQUIRE(got.preemptions == s.preempted);
        REQUIRE(got.queue.base() == doctest::Approx(s.started - s.arrival).epsilon(1e-8));
        REQUIRE(got.ttft.base() == doctest::Approx(s.first - s.arrival).epsilon(1e-8));
        REQUIRE(got.e2el.base() == doctest::Approx(s.end - s.arrival).epsilon(1e-8));
        preempted += s.preempted;
      }
      if (single_steps) {
        CHECK(m.kv_held == doctest::Approx(engine.held).epsilon(1e-8));
        CHECK(m.kv_filled == doctest::Approx(engine.filled).epsilon(1e-8));
      }
    }
  }
  CHECK(preempted > n / 2);  // memory was short
}

TEST_CASE("disaggregation: random loads equal two engines and a link between them") {
  Random random(7);
  const auto pick = [&](int low, int high) { return static_cast<int>(random.uniform_integer(low, high)); };
  const int n = scenarios(100);
  int preempted = 0, unordered = 0;
  for (int i = 0; i < n; ++i) {
    Load load = random_load(random);
    Rules prefill = load.rules;
    prefill.prompts_first = prefill.swap = prefill.whole_prompt = false;
    prefill.reserved = prefill.draft_time = 0;
    prefill.drafts = 0;
    prefill.law.token = 1.234e-5, prefill.law.context = 1.7e-7;  // steps of the two end at different times
    Rules decode = prefill;
    prefill.hands_over = true;
    decode.places = pick(1, 8);
    decode.capacity += decode.block * pick(0, 20);
    decode.swap = load.rules.swap;
    decode.link_rate = 1000.0 * pick(1, 1000);
    decode.link_latency = 1e-3 * pick(0, 3) + 1.7e-7;
    const auto deployment_of = [](const Rules& r) {
      auto d = fake::deployment(r.capacity);
      add_window(*d, r);
      d->engine.scheduler = "decode_first";
      d->engine.preemption = r.swap ? "swap" : "recompute";
      d->engine.victim = r.fewest_outputs ? Victim::kFewestOutputs : Victim::kNewest;
      d->engine.chunked_prefill = r.chunks;
      d->engine.watermark = r.free_share;
      d->engine.max_num_batched_tokens = r.budget;
      d->engine.max_num_seqs = r.places;
      d->engine.block_size = r.block;
      d->engine.max_model_len = r.slot;
      return d;
    };
    fake::Requests source;
    for (const Sequence& s : load.sequences) source.add(s.arrival, s.prompt, s.output);
    Engine prompts(prefill), answers(decode);
    if (!run_apart(prompts, answers, load.sequences)) {
      ++unordered;
      continue;
    }
    ServingOptions options = fake::options(prefill.law);
    options.disaggregation = Disaggregation{.prefill = deployment_of(prefill),
                                            .bandwidth = BytesPerSecond(decode.link_rate),
                                            .latency = Seconds(decode.link_latency)};
    for (const bool single_steps : {true, false}) {
      if (single_steps) options.max_steps_per_event = 1;
      fake::Requests again = source;
      fake::Recorder seen;
      const ServingMetrics m = simulate(deployment_of(decode), again, {}, options, &seen);
      INFO(i, " block ", decode.block, " budget ", decode.budget, " places ", prefill.places, " and ", decode.places,
           " capacity ", prefill.capacity, " and ", decode.capacity, " rate ", decode.link_rate, " swap ", decode.swap,
           " fewest ", decode.fewest_outputs);
      REQUIRE(seen.requests.size() == load.sequences.size());
      for (std::size_t k = 0; k < load.sequences.size(); ++k) {
        const Sequence& s = load.sequences[k];
        const RequestRecord& got = seen.requests[static_cast<std::int64_t>(k)];
        INFO("request ", k, " prompt ", s.prompt, " output ", s.output);
        REQUIRE(got.preemptions == s.preempted);
        REQUIRE(got.ttft.base() == doctest::Approx(s.first - s.arrival).epsilon(1e-8));
        REQUIRE(got.e2el.base() == doctest::Approx(s.end - s.arrival).epsilon(1e-8));
        preempted += s.preempted;
      }
      if (single_steps) {
        CHECK(m.kv_held == doctest::Approx(prompts.held + answers.held).epsilon(1e-8));
        CHECK(m.kv_filled == doctest::Approx(prompts.filled + answers.filled).epsilon(1e-8));
      }
      options.max_steps_per_event = ServingOptions{}.max_steps_per_event;
    }
  }
  CHECK(preempted > n / 4);
  CHECK(unordered <= n / 50);
}
