// Pictures of requests: when they are encoded.
#include "sim/serve/media.h"

#include <array>

#include <doctest/doctest.h>

#include "sim/step/deployment.h"
#include "tests/sim/serve/fake.h"

using namespace roofcast;

namespace {

/// 10 us a token, and 1 ms for each picture.
class Encoding final : public StepPricer {
 public:
  StepCost cost(const StepBatch& b) override {
    StepCost cost = law_.cost(b);
    for (const EncoderWork& w : b.encodes) cost.time += w.items * kMillisecond;
    return cost;
  }
  StepCost decode_run(const StepBatch& first, std::int64_t steps) override { return law_.decode_run(first, steps); }
  std::int64_t steps_within(const StepBatch& b, Seconds budget, std::int64_t limit) override {
    return law_.steps_within(b, budget, limit);
  }

 private:
  fake::LinearPricer law_;
};

/// Prompts of 60 tokens, 40 of them two pictures.
ServingMetrics play(const std::shared_ptr<Deployment>& d, fake::Requests& source, fake::Recorder& seen, bool pictures) {
  WorkloadSpec workload;
  if (pictures) workload.encoded = {{.items = 2, .sequences = 1, .patches = 80, .outputs = 20, .tokens = 20}};
  d->media = workload.encoded;
  ServingOptions options;
  options.pricer = [](const std::shared_ptr<const Deployment>&) { return std::make_unique<Encoding>(); };
  return simulate(d, source, workload, options, &seen);
}

Seconds ttft_more(int budget, std::vector<std::uint64_t> prefix = {}) {
  std::array<Seconds, 2> ttft{};
  for (const bool pictures : {false, true}) {
    const auto d = fake::deployment(10000);
    d->engine.max_num_batched_tokens = budget;
    d->engine.prefix_caching = !prefix.empty();
    fake::Requests source;
    for (int i = 0; i < 2; ++i) {
      source.add(i, 60, 4);
      source.all().back().prefix_blocks = prefix;
      source.all().back().prefix_block_tokens = prefix.empty() ? 0 : 16;
    }
    fake::Recorder seen;
    play(d, source, seen, pictures);
    ttft[pictures ? 1 : 0] = seen.requests[1].ttft;
  }
  return ttft[1] - ttft[0];
}

}  // namespace

TEST_CASE("images are encoded once, before the first chunk of their prompt") {
  CHECK(ttft_more(1000).in(kMillisecond) == doctest::Approx(2.0));
  CHECK(ttft_more(16).in(kMillisecond) == doctest::Approx(2.0));
}

TEST_CASE("images whose tokens are in the prefix cache are not encoded again") {
  // 48 of 60 tokens are found; of what is left one picture at most.
  CHECK(ttft_more(1000, {1, 2, 3}).in(kMillisecond) == doctest::Approx(1.0));
}

TEST_CASE("images lengthen prompts") {
  ModelSpec model;
  EncoderSpec& encoder = model.encoders.pictures.emplace();
  encoder.rule = EncoderSpec::Rule::kFixed;
  encoder.image_size = 896;
  encoder.most = 256;
  WorkloadSpec workload;
  workload.prompt_tokens.law = LengthSpec::Fixed{100};
  workload.media.resize(1);
  workload.media[0].count = 3;
  workload.media[0].width = workload.media[0].height = 10;
  place_media(workload, model);
  CHECK(workload.prompt_tokens.longest() == 100 + 3 * 256);
  CHECK(workload.prompt_tokens.mean() == 868.0);
  CHECK(*workload.prompt_tokens.constant() == 868);
  CHECK(workload.encoded.front().items == 3);
}
