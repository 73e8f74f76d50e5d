#include "sim/step/expert_overlap.h"

#include <doctest/doctest.h>

#include "sim/step/step_model.h"
#include "tests/sim/step/shipped.h"

using namespace roofcast;

namespace {

constexpr std::size_t at(Stage stage) { return static_cast<std::size_t>(stage); }

/// Milliseconds of one half: A 2, B 1, S 1, D 4, E 5, C 6.
StageSeconds half() {
  StageSeconds s;
  s.of[at(Stage::kEntry)] = 2, s.of[at(Stage::kCore)] = 1, s.of[at(Stage::kShared)] = 1;
  s.of[at(Stage::kDispatch)] = 4, s.of[at(Stage::kExperts)] = 5, s.of[at(Stage::kCombine)] = 6;
  return s;
}

std::shared_ptr<Deployment> overlapping(ExpertOverlap overlap, const std::string& gpu = "h100-sxm", int ranks = 72) {
  auto d = shipped::deploy("deepseek-v3", gpu, "sglang");
  d->sharding = {.attention_dp = ranks, .ep = ranks, .redundant_experts = 32};
  d->engine.expert_exchange = ExpertExchange::kAllToAll;
  d->engine.expert_overlap = overlap;
  d->memory = plan_memory(*d);
  return d;
}

StepBatch decodes(int each, int ranks, double context = 2000) {
  return {.decodes = each * ranks, .decode_context = each * ranks * context};
}

}  // namespace

TEST_CASE("expert overlap: schedules by hand") {
  const auto d = overlapping(ExpertOverlap::kTwoBatch);
  // Attention 3 for both halves, 1.5 each. Decode: 2 (5 + max(1 + 2, 4)) + max(2 x 1 + 3, 2 x 6)
  CHECK(overlapped_layers(half(), false, *d).seconds(3) == doctest::Approx(10 + 8 + 12));
  // Attention outgrows what comes back: max(2 + 20, 12)
  CHECK(overlapped_layers(half(), false, *d).seconds(20) == doctest::Approx(10 + 8 + 22));
  // Prompts: max(1 + 2 + 1 + 1.5, 4) + max(5, 4) + max(5, 6) + max(5.5, 6)
  CHECK(overlapped_layers(half(), true, *d).seconds(3) == doctest::Approx(5.5 + 5 + 6 + 6));
  d->engine.expert_overlap = ExpertOverlap::kDualBatch;
  // max(2 + 1 + 1.5, 4) + max(5, 4) + max(1 + 5, 6) + max(1 + 3 + 1.5, 6)
  CHECK(overlapped_layers(half(), true, *d).seconds(3) == doctest::Approx(4.5 + 5 + 6 + 6));
  d->engine.expert_overlap = ExpertOverlap::kSingleBatch;
  d->sharding = {.attention_dp = 64, .ep = 64};  // four experts a GPU
  // 2 + 1 + 3 of attention + max(1, 4) + 2/3 x 5 + the down projection on 129 of 132 SMs beside what comes back, in
  // four
  const double down = 5.0 / 3.0 * 132 / 129;
  CHECK(overlapped_layers(half(), false, *d).seconds(3) == doctest::Approx(2 + 1 + 3 + 4 + 10.0 / 3 + 6 + down / 4));
}

TEST_CASE("expert overlap: what shares the SMs is slower for it, what is alone hides nothing") {
  const auto d = overlapping(ExpertOverlap::kTwoBatch);
  StageSeconds s = half();
  s.sm_share = 0.2;  // four fifths of the SMs are left
  // max(5.5 / 0.8, 4) + max(5 / 0.8, 4) + max(5 / 0.8, 6) + max(5.5 / 0.8, 6)
  CHECK(overlapped_layers(s, true, *d).seconds(3) == doctest::Approx(2 * 6.875 + 2 * 6.25));
  s = half();
  s.dispatch_alone = 4, s.combine_alone = 6;  // all of it: as without overlap
  CHECK(overlapped_layers(s, false, *d).seconds(3) == doctest::Approx(2 * (2 + 1 + 1 + 4 + 5 + 6) + 3));
}

TEST_CASE("expert overlap: a run of steps is the sum of its steps") {
  OverlappedLayers layers{.fixed = 1, .attention_share = 0.1};
  layers.slots[0] = {.work = 1, .attention_share = 0.4, .exchange = 3};  // outgrown at x = 5
  layers.slots[1] = {.work = 2, .attention_share = 0.5, .exchange = 6};  // at 8
  layers.slots[2] = {.work = 1, .attention_share = 0, .exchange = 2};
  for (const double floor : {0.0, 13.5, 100.0})
    for (const double n : {1.0, 7.0, 40.0}) {
      double sum = 0;
      for (int i = 0; i < static_cast<int>(n); ++i) sum += std::max(floor, 0.5 + layers.seconds(4 + 0.3 * i));
      CHECK(layers.series(0.5, 4, 0.3, n, floor) == doctest::Approx(sum).epsilon(1e-12));
    }
  CHECK(layers.series(0.5, 4, 0.0, 10, 0.0) == doctest::Approx(10 * (0.5 + layers.seconds(4))));
}

TEST_CASE("expert overlap: decode runs equal their steps, whatever is overlapped") {
  for (const ExpertOverlap overlap : {ExpertOverlap::kSingleBatch, ExpertOverlap::kTwoBatch, ExpertOverlap::kDualBatch})
    for (const int each : {2, 40, 200}) {
      StepModel model(overlapping(overlap));
      const StepBatch first = decodes(each, 72, 1000);
      double sum = 0;
      for (int i = 0; i < 100; ++i) {
        StepBatch step = first;
        step.decode_context += i * step.decodes;
        sum += model.time(step).base();
      }
      CHECK(model.decode_run(first, 100).time.base() == doctest::Approx(sum).epsilon(1e-9));
    }
}

TEST_CASE("expert overlap: over a network many tokens gain, few lose, and no exchange is beaten") {
  const auto seconds = [](ExpertOverlap overlap, int each) {
    return StepModel(overlapping(overlap)).time(decodes(each, 72)).base();
  };
  CHECK(seconds(ExpertOverlap::kTwoBatch, 256) < 0.85 * seconds(ExpertOverlap::kNone, 256));
  CHECK(seconds(ExpertOverlap::kTwoBatch, 8) > seconds(ExpertOverlap::kNone, 8));  // weights are read twice
  CHECK(seconds(ExpertOverlap::kSingleBatch, 256) < seconds(ExpertOverlap::kNone, 256));
  for (const ExpertOverlap overlap :
       {ExpertOverlap::kSingleBatch, ExpertOverlap::kTwoBatch, ExpertOverlap::kDualBatch}) {
    StepModel model(overlapping(overlap)), alone(overlapping(ExpertOverlap::kNone));
    double exchange = 0;
    for (const OperatorTime& op : alone.breakdown(decodes(128, 72)).operators)
      if (op.name == "expert_dispatch" || op.name == "expert_combine") exchange += op.cost.time.base();
    CHECK(model.time(decodes(128, 72)).base() > 0.9 * exchange);
    // The lines of a step add up to it: what is hidden of the exchange is in none of them.
    const StepBreakdown step = model.breakdown(decodes(128, 72));
    CHECK((step.gpu_time + step.host_time).base() == doctest::Approx(step.time.base()).epsilon(0.02));
  }
}

TEST_CASE("expert overlap: ranks that do different things, or have too little, run one batch") {
  const auto d = overlapping(ExpertOverlap::kTwoBatch, "h100-sxm", 2);
  const std::array<RankLoad, 2> mixed{{{.decodes = 64, .decode_context = 64e3}, {.prefills = 1}}},
      idle{{{.decodes = 64, .decode_context = 64e3}, {}}},
      one{{{.decodes = 64, .decode_context = 64e3}, {.decodes = 1}}};
  const std::array<PrefillChunk, 1> chunk{{{.tokens = 1000}}};
  CHECK(overlapped_batches({.decodes = 64, .decode_context = 64e3, .prefills = chunk, .ranks = mixed}, *d) == 0);
  CHECK(overlapped_batches({.decodes = 64, .decode_context = 64e3, .ranks = idle}, *d) == 2);
  CHECK(overlapped_batches({.decodes = 65, .decode_context = 65e3, .ranks = one}, *d) == 0);
  d->engine.expert_overlap = ExpertOverlap::kDualBatch;
  CHECK(overlapped_batches({.decodes = 64, .decode_context = 64e3, .ranks = idle}, *d) == 0);
  CHECK(overlapped_batches({.decodes = 64, .decode_context = 64e3}, *d) == 2);  // 32 each
  CHECK(overlapped_batches({.decodes = 62, .decode_context = 62e3}, *d) == 0);
  d->engine.expert_exchange = ExpertExchange::kAllGather;
  CHECK(overlapped_batches({.decodes = 64, .decode_context = 64e3}, *d) == 0);
}

TEST_CASE("expert overlap: without an all-to-all exchange, or with one rank, it changes no digit") {
  const auto time = [](ExpertOverlap overlap, ExpertExchange exchange, int ranks) {
    const auto d = overlapping(overlap, "h100-sxm", 72);
    d->engine.expert_exchange = exchange;
    if (ranks == 1) d->sharding = {.tp = 8, .ep = 8};
    StepModel model(d);
    double sum = 0;
    for (const int each : {1, 7, 64, 300}) sum += model.breakdown(decodes(each, ranks)).time.base();
    const std::array<PrefillChunk, 1> chunk{{{.tokens = 777}}};
    return sum + model.time({.prefills = chunk}).base();
  };
  for (const ExpertOverlap overlap :
       {ExpertOverlap::kSingleBatch, ExpertOverlap::kTwoBatch, ExpertOverlap::kDualBatch}) {
    CHECK(time(overlap, ExpertExchange::kAllGather, 72) == time(ExpertOverlap::kNone, ExpertExchange::kAllGather, 72));
    CHECK(time(overlap, ExpertExchange::kAllToAll, 1) == time(ExpertOverlap::kNone, ExpertExchange::kAllToAll, 1));
    CHECK(time(overlap, ExpertExchange::kAllToAll, 72) != time(ExpertOverlap::kNone, ExpertExchange::kAllToAll, 72));
  }
}
