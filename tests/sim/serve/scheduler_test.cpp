// Each scheduler on a few requests, step by step.
#include "sim/serve/scheduler.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.h"
#include "sim/step/deployment.h"
#include "tests/sim/serve/fake.h"

using namespace roofcast;

namespace {

/// Steps as "2 decodes + 100 prompt tokens, 3 times": "2+100x3".
std::string play(const std::shared_ptr<Deployment>& d, fake::Requests& source, ServingMetrics* metrics = nullptr,
                 fake::StepLaw law = {}) {
  fake::Recorder seen;
  const ServingMetrics m = simulate(d, source, {}, fake::options(law), &seen);
  if (metrics != nullptr) *metrics = m;
  std::string text;
  for (const StepRecord& s : seen.steps) {
    text += fmt::format("{}{}+{}x{}", text.empty() ? "" : " ", s.decodes, s.prefill_tokens, s.steps);
  }
  return text;
}

std::shared_ptr<Deployment> engine(const char* scheduler, int budget, double cache = 10000) {
  const auto d = fake::deployment(cache);
  d->engine.scheduler = scheduler;
  d->engine.max_num_batched_tokens = budget;
  return d;
}

}  // namespace

TEST_CASE("decode_first: chunks fill what the decodes leave of the budget") {
  fake::Requests source;
  source.add(0, 60, 4).add(0, 60, 4);
  // 60 + 40; then the first decodes beside the other 20; then both, until each has 4 tokens.
  CHECK(play(engine("decode_first", 100), source) == "0+100x1 1+20x1 2+0x2 1+0x1");
}

TEST_CASE("decode_first: without chunks a prompt waits for a step that it fits in") {
  const auto d = engine("decode_first", 100);
  d->engine.chunked_prefill = false;
  fake::Requests source;
  source.add(0, 60, 4).add(0, 60, 4).add(0, 101, 4);
  ServingMetrics m;
  CHECK(play(d, source, &m) == "0+60x1 1+60x1 2+0x2 1+0x1");
  CHECK(m.failed == 1);  // never fits
}

TEST_CASE("prefill_first: prompts run alone and first") {
  fake::Requests source;
  source.add(0, 60, 4).add(0, 60, 4);
  CHECK(play(engine("prefill_first", 100), source) == "0+100x1 0+20x1 2+0x3");
}

TEST_CASE("prefill_first: admission reserves a share of the output") {
  // A prompt of 16 and 65 tokens: 16 + 64 cached in the end, 5 blocks; with 0.5 reserved 16 + 32, 3 blocks.
  for (const auto& [ratio, together] : {std::pair{1.0, 2}, {0.5, 3}}) {
    const auto d = engine("prefill_first", 1000, 10 * 16);
    d->engine.reserve_output_ratio = ratio;
    fake::Requests source;
    source.add(0, 16, 65).add(0, 16, 65).add(0, 16, 65);
    const std::string steps = play(d, source);
    CHECK(steps.substr(steps.find(' ') + 1, 2) == fmt::format("{}+", together));
  }
}

TEST_CASE("mixed_chunk: chunks run together with decodes, with a share of the output reserved") {
  fake::Requests source;
  source.add(0, 60, 4).add(0, 60, 4);
  CHECK(play(engine("mixed_chunk", 100), source) == "0+100x1 1+20x1 2+0x2 1+0x1");  // as decode_first
  // Admission as prefill_first's: 16 + 64 of 160 tokens reserved, so two of three; with 0.5, 16 + 32, three.
  for (const auto& [ratio, together] : {std::pair{1.0, 2}, {0.5, 3}}) {
    const auto d = engine("mixed_chunk", 1000, 10 * 16);
    d->engine.reserve_output_ratio = ratio;
    fake::Requests three;
    three.add(0, 16, 65).add(0, 16, 65).add(0, 16, 65);
    CHECK(play(d, three).starts_with(fmt::format("0+{}x1 {}+", 16 * together, together)));
  }
}

TEST_CASE("no_evict: admits only requests that can run to completion, in mixed steps") {
  // 5 blocks each; 10 are there.
  const auto d = engine("no_evict", 1000, 10 * 16);
  fake::Requests source;
  source.add(0, 16, 65).add(0, 16, 65).add(0, 16, 65);
  ServingMetrics m;
  CHECK(play(d, source, &m) == "0+32x1 2+0x64 0+16x1 1+0x64");
  CHECK(m.preemptions == 0);
  CHECK(m.kv_peak_usage == doctest::Approx(1.0));
}

TEST_CASE("static: the next batch starts when the last sequence has ended, and ended ones are computed on") {
  const auto d = engine("static", 1000);
  d->engine.max_num_seqs = 2;
  fake::Requests source;
  source.add(0, 10, 3).add(0, 10, 6).add(0, 10, 2);
  CHECK(play(d, source) == "0+20x1 2+0x2 2+0x3 0+10x1 1+0x1");
}

TEST_CASE("static: equals the hand calculation") {
  const auto d = engine("static", 100000);
  fake::Requests source;
  for (int i = 0; i < 8; ++i) source.add(0, 100, 51);
  const ServingMetrics m = simulate(d, source, {}, fake::options());
  // prefill 1 + 800 * 0.01 = 9 ms; 50 steps of 1 + 0.08 ms + 0.01 us * 8 * (100 .. 149)
  CHECK(m.duration.in(kMillisecond) == doctest::Approx(9 + 50 * 1.08 + 1e-5 * 8 * (50 * 100 + 50 * 49 / 2)));
}

TEST_CASE("decode_first: the youngest is preempted when blocks run out, and computed again") {
  // 4 blocks. Two prompts of 16 take one each and grow to two; the third block of the first evicts the second.
  const auto d = engine("decode_first", 1000, 4 * 16);
  fake::Requests source;
  source.add(0, 16, 30).add(0, 16, 30);
  fake::Recorder seen;
  const ServingMetrics m = simulate(d, source, {}, fake::options(), &seen);
  CHECK(m.preemptions == 1);
  CHECK(seen.requests[0].preemptions == 0);
  CHECK(seen.requests[1].preemptions == 1);
  CHECK(m.output_tokens == 60);
  // 16 steps together fill two blocks each; alone the first takes its third, for its other 13 tokens; then the second
  // computes its prompt and the 17 tokens it had again, which gives the 18th.
  fake::Requests again;
  again.add(0, 16, 30).add(0, 16, 30);
  CHECK(play(d, again) == "0+32x1 2+0x16 1+0x1 1+0x12 0+33x1 1+0x12");
}

TEST_CASE("preemption under priorities: the least urgent of those that run leaves, then the last to arrive") {
  // 6 blocks of 16. Three prompts of 16 take two each at their 17th token; at the 33rd one of them needs a third.
  const auto preempted = [](std::vector<int> priorities, const char* policy) {
    const auto d = engine("decode_first", 1000, 6 * 16);
    fake::Requests source;
    for (std::size_t i = 0; i < priorities.size(); ++i) source.add(1e-6 * static_cast<double>(i), 16, 30);
    for (std::size_t i = 0; i < priorities.size(); ++i) source.all()[i].priority = priorities[i];
    ServingOptions options = fake::options();
    options.policy = policy;
    fake::Recorder seen;
    simulate(d, source, {}, options, &seen);
    std::vector<int> times;
    for (const auto& [id, r] : seen.requests) times.push_back(r.preemptions);
    return times;
  };
  CHECK(preempted({0, 5, 1}, "fcfs") == std::vector{0, 0, 1});
  CHECK(preempted({0, 5, 1}, "priority") == std::vector{0, 1, 0});
  CHECK(preempted({5, 5, 1}, "priority") == std::vector{0, 1, 0});
  CHECK(preempted({1, 1, 1}, "priority") == std::vector{0, 0, 1});
}

TEST_CASE("fewest_outputs: the decoding one with the fewest tokens leaves and waits behind all, as in SGLang") {
  // 6 blocks of 16. Three prompts take 4 of them, and the first two decode steps all. The second's 33rd token needs one
  // more: all three have as many tokens of output, and its prompt is the longest, though the third is younger.
  const auto d = engine("prefill_first", 1000, 6 * 16);
  d->engine.victim = Victim::kFewestOutputs;
  d->engine.reserve_output_ratio = 0;
  d->engine.max_num_seqs = 3;
  fake::Requests source;
  source.add(0, 16, 30).add(0, 30, 40).add(0, 16, 30).add(0, 16, 2);
  fake::Recorder seen;
  simulate(d, source, {}, fake::options(), &seen);
  CHECK(seen.requests[0].preemptions == 0);
  CHECK(seen.requests[1].preemptions == 1);
  CHECK(seen.requests[2].preemptions == 0);
  CHECK(seen.requests[1].e2el > seen.requests[3].e2el);  // which came last and never ran, yet goes ahead
}

TEST_CASE("decode_first: with prefix caching a preempted sequence finds the blocks again that nobody took") {
  // As above; the first takes the tail of the two blocks that the second left, so that 16 of its 33 tokens are there.
  const auto d = engine("decode_first", 1000, 4 * 16);
  d->engine.prefix_caching = true;
  fake::Requests source;
  source.add(0, 16, 30).add(0, 16, 30);
  CHECK(play(d, source) == "0+32x1 2+0x16 1+0x1 1+0x12 0+17x1 1+0x12");
}

TEST_CASE("decode_first: a preempted sequence finds the prefix that it shares, and its own blocks after that") {
  // 6 blocks. Both prompts share one of their two; at 48 tokens each has two of its own, and there is one more.
  const auto d = engine("decode_first", 1000, 6 * 16);
  d->engine.prefix_caching = true;
  fake::Requests source;
  source.add(0, 32, 30).add(0, 32, 30);
  for (Request& r : source.all()) r.prefix_blocks = {1}, r.prefix_block_tokens = 16;
  CHECK(play(d, source) == "0+64x1 2+0x16 1+0x1 1+0x12 0+1x1 1+0x12");
}

TEST_CASE("prefill_first: with prefix caching a preempted sequence finds only its prompt again") {
  // 5 blocks. Both prompts grow to two blocks; the second's 33rd token finds no sixth block, and only its prompt stays.
  const auto d = engine("prefill_first", 1000, 5 * 16);
  d->engine.prefix_caching = true;
  d->engine.reserve_output_ratio = 0;
  fake::Requests source;
  source.add(0, 16, 30).add(0, 16, 30);
  ServingMetrics m;
  const std::string steps = play(d, source, &m);
  CHECK(m.preemptions == 1);
  CHECK(steps.find("0+17x1") != std::string::npos);  // 33 less the 16 of the prompt, though two blocks were whole
}

TEST_CASE("decode_first: a prompt that has to fit waits for room for all of its chunks") {
  // 6 blocks: the first takes 3 to 5 of them; a prompt of 60 tokens needs 4, its first chunk but one.
  const auto d = engine("decode_first", 20, 6 * 16);
  const auto play_both = [&](ServingMetrics& m) {
    fake::Requests source;
    source.add(0, 48, 20).add(0, 60, 2);
    return play(d, source, &m);
  };
  ServingMetrics m;
  (void)play_both(m);
  CHECK(m.preemptions > 0);
  d->engine.prompt_must_fit = true;
  CHECK(play_both(m) == "0+20x1 0+20x1 0+8x1 1+0x19 0+20x1 0+20x1 0+20x1 1+0x1");
  CHECK(m.preemptions == 0);
}

TEST_CASE("batch waiting: a prompt that has to fit is held no longer once it does not, run or single steps") {
  // 8 blocks. Two sequences take 3 and, from the 17th step on, 5; the prompt of 60 tokens needs 4, its first chunk 2.
  // The second ends after 30 steps. What waits, 69 tokens of which the free places get a share, is less than 0.9 x 20.
  const auto d = engine("decode_first", 20, 8 * 16);
  d->engine.max_num_seqs = 3;
  d->engine.prompt_must_fit = true;
  d->engine.prefill_wait_ratio = 0.9;
  d->engine.prefill_wait_steps = 25;
  const auto queue_of = [&](std::int64_t steps) {
    fake::Requests source;
    source.add(0, 17, 60).add(0, 1, 31).add(0.0005, 60, 2);
    for (int i = 0; i < 9; ++i) source.add(0.0005, 1, 2);
    ServingOptions options = fake::options();
    options.max_steps_per_event = steps;
    fake::Recorder seen;
    simulate(d, source, {}, options, &seen);
    return seen.requests[2].queue.in(kMillisecond);
  };
  CHECK(queue_of(std::int64_t{1} << 40) == doctest::Approx(queue_of(1)).epsilon(1e-9));
}

TEST_CASE("decode_first: a swapped sequence pays PCIe both ways and computes nothing again") {
  const auto d = engine("decode_first", 1000, 4 * 16);
  d->engine.preemption = "swap";
  fake::Requests source;
  source.add(0, 16, 30).add(0, 16, 30);
  CHECK(play(d, source) == "0+32x1 2+0x16 1+0x1 1+0x12 1+0x1 1+0x12");
}

TEST_CASE("max_num_seqs: one more waits") {
  const auto d = engine("decode_first", 1000);
  d->engine.max_num_seqs = 2;
  fake::Requests source;
  source.add(0, 10, 5).add(0, 10, 5).add(0, 10, 5);
  CHECK(play(d, source) == "0+20x1 2+0x4 0+10x1 1+0x4");
}

TEST_CASE("prefill wait: prompts are held while others decode, until enough of them wait or steps have passed") {
  const auto d = engine("no_evict", 100);
  d->engine.prefill_wait_ratio = 0.5;
  d->engine.prefill_wait_steps = 10;
  fake::Requests source;
  source.add(0, 10, 40).add(1e-3, 10, 3);
  // The second comes during the first prefill, waits ten steps (2 + 10 of 50 tokens), then runs beside a decode.
  CHECK(play(d, source) == "0+10x1 1+0x10 1+10x1 2+0x2 1+0x26");
}

TEST_CASE("attention-DP balance: prompts are held until every rank has one, or steps have passed") {
  const auto d = engine("no_evict", 100);
  d->sharding.attention_dp = 2;
  d->engine.attention_dp_balance = true;
  d->engine.prefill_wait_steps = 10;
  // Both ranks decode. One prompt waits for the tenth step since prompts last ran; two go at once.
  fake::Requests alone, pair;
  alone.add(0, 10, 40).add(0, 10, 40).add(1e-4, 10, 3);
  CHECK(play(d, alone).starts_with("0+20x1 2+0x9 2+10x1 3+0x2 2+0x"));
  pair.add(0, 10, 40).add(0, 10, 40).add(1e-4, 10, 3).add(1e-4, 10, 3);
  CHECK(play(d, pair).starts_with("0+20x1 2+20x1 4+0x2 2+0x"));
  // Those ten steps pass whether or not a prompt waits in them: one that comes after 25 is let in after 29.
  fake::Requests late;
  late.add(0, 10, 60).add(0, 10, 60).add(25.5e-3, 10, 3);
  CHECK(play(d, late).find(" 2+10x1 ") != std::string::npos);
  // With one sequence a rank has nothing to decode: nothing is gained by waiting.
  fake::Requests idle;
  idle.add(0, 10, 40).add(1e-4, 10, 3);
  CHECK(play(d, idle).starts_with("0+10x1 1+10x1"));
}

TEST_CASE("attention-DP balance: a prompt stays on the rank that it came to, within that rank's budget") {
  const auto d = engine("no_evict", 15);
  d->sharding.attention_dp = 2;
  d->engine.attention_dp_balance = true;
  d->engine.chunked_prefill = false;
  d->engine.prefill_wait_steps = 100;
  // Two prompts a rank, and room for one of them in a step: the second ones run in the next.
  fake::Requests source;
  source.add(0, 10, 4).add(0, 10, 4).add(0, 10, 4).add(0, 10, 4);
  CHECK(play(d, source).starts_with("0+20x1 2+20x1 4+0x"));
  // A third prompt of 10 tokens belongs to the first rank; it waits for company while both ranks decode.
  fake::Requests third;
  third.add(0, 10, 8).add(0, 10, 20).add(0, 10, 8);
  CHECK(play(d, third).starts_with("0+20x1 2+0x7 1+10x1"));  // the first rank has nothing left to decode then
}

TEST_CASE("attention-DP balance: what is left of a prompt has what its rank's decodes leave of the budget") {
  const auto d = engine("no_evict", 10);
  d->sharding.attention_dp = 2;
  d->engine.attention_dp_balance = true;
  d->engine.prefill_wait_steps = 1;  // no step is held
  fake::Requests source;
  // The first rank has prompts of 24 and 30 tokens, the second of 10 and 8. 10 + 10, 10 + 8, then 4 and 6 of the next;
  // with the first of them decoding, 9 a step are left for the other 24 tokens.
  source.add(0, 24, 9).add(0, 10, 9).add(0, 30, 9).add(0, 8, 9);
  CHECK(play(d, source).starts_with("0+20x1 1+18x1 2+10x1 3+9x1 3+9x1 3+6x1 4+0x"));
}

TEST_CASE("asynchronous scheduling sees an arrival one step later") {
  for (const bool async : {false, true}) {
    const auto d = engine("decode_first", 1000);
    d->engine.async_scheduling = async;
    fake::Requests source;
    // Prefill ends at 1.1 ms, decode steps take 1.01 ms: the second request arrives in the second of them.
    source.add(0, 10, 10).add(2.5e-3, 10, 2);
    CHECK(play(d, source).starts_with(async ? "0+10x1 1+0x3 1+10x1" : "0+10x1 1+0x2 1+10x1"));
  }
}

TEST_CASE("one thread plans and launches: what arrives before the last kernel is launched is seen") {
  for (const double launched : {0.0, 0.3e-3, 0.5e-3, 1e-3}) {
    const auto d = engine("decode_first", 1000);
    d->engine.async_scheduling = d->engine.scheduler_launches = true;
    fake::Requests source;
    // The second decode step begins at 2.11 ms, 0.39 ms before the second request comes.
    source.add(0, 10, 10).add(2.5e-3, 10, 2);
    fake::StepLaw law;
    law.launched = law.prefill_launched = launched;
    CHECK(
        play(d, source, nullptr, law).starts_with(launched < 0.39e-3 ? "0+10x1 1+0x3 1+10x1" : "0+10x1 1+0x2 1+10x1"));
  }
}

TEST_CASE("receive interval: requests are looked for every so many steps") {
  const auto d = engine("decode_first", 1000);
  d->engine.receive_interval = 5;
  fake::Requests source;
  source.add(0, 10, 10).add(1.5e-3, 10, 2);
  CHECK(play(d, source).starts_with("0+10x1 1+0x4 1+10x1"));  // after the prefill and four decode steps
}

TEST_CASE("stream interval: clients see chunks") {
  const auto d = engine("decode_first", 1000);
  d->engine.stream_interval = 5;
  fake::Requests source;
  source.add(0, 10, 21);
  ServingMetrics m;
  play(d, source, &m);
  // 20 steps of about 1.01 ms in chunks of five; the chunk that ends within the first four steps is not there yet.
  CHECK(m.itl_ms.mean() == doctest::Approx(5 * 1.01).epsilon(0.001));
  CHECK(m.ttft_ms.mean() == doctest::Approx(1.1));
}

TEST_CASE("no cache: every token computes the whole sequence again") {
  const auto d = engine("decode_first", 1000);
  d->engine.kv_cache = false;
  fake::Requests source;
  source.add(0, 10, 4);
  ServingMetrics m;
  play(d, source, &m);
  CHECK(m.duration.in(kMillisecond) == doctest::Approx(4 + 0.01 * (10 + 11 + 12 + 13)));
}

TEST_CASE("contiguous cache: every sequence takes the room of the longest") {
  const auto d = engine("decode_first", 1000, 1000);
  d->engine.block_size = 0;
  d->engine.max_model_len = 400;
  fake::Requests source;
  source.add(0, 10, 5).add(0, 10, 5).add(0, 10, 5);
  CHECK(play(d, source).starts_with("0+20x1"));  // two of 400 fit in 1000
}

TEST_CASE("policies: shortest and most urgent first") {
  const auto first_of = [](const char* policy) {
    const auto d = engine("decode_first", 1000);
    d->engine.max_num_seqs = 1;
    fake::Requests source;
    source.add(0, 10, 50).add(1e-3, 30, 5).add(2e-3, 20, 5).add(3e-3, 40, 5);
    ServingOptions options = fake::options();
    for (Request& r : source.all()) r.priority = r.id == 3 ? 0 : 1;
    options.policy = policy;
    fake::Recorder seen;
    simulate(d, source, {}, options, &seen);
    int first = 1;
    for (int i = 2; i < 4; ++i) {
      if (seen.requests[i].arrival + seen.requests[i].queue < seen.requests[first].arrival + seen.requests[first].queue)
        first = i;
    }
    return first;
  };
  CHECK(first_of("fcfs") == 1);
  CHECK(first_of("shortest_first") == 2);
  CHECK(first_of("priority") == 3);
  CHECK_THROWS_AS(first_of("shortest"), ConfigError);
}

TEST_CASE("schedulers: an unknown name is the user's mistake") {
  CHECK_THROWS_AS(make_scheduler("decode_last"), ConfigError);
}
