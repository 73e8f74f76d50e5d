// Steps of encoder-decoders.
#include <array>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/random.h"
#include "sim/step/step_model.h"
#include "tests/scenarios.h"
#include "tests/sim/step/shipped.h"

using namespace roofcast;

namespace {

StepBreakdown prompts(const std::shared_ptr<Deployment>& d, std::vector<PrefillChunk> chunks) {
  return StepModel(d).breakdown({.prefills = chunks});
}

double flops_of(const StepBreakdown& step, const std::string& name) {
  for (const OperatorTime& op : step.operators) {
    if (op.name == name) return op.cost.flops.base();
  }
  return 0;
}

}  // namespace

TEST_CASE("a prompt passes the encoder, and one token of it the decoder") {
  const auto d = shipped::deploy("t5-11b", "h100-sxm", "trtllm", 1, Fidelity::kIdeal);
  const StepBreakdown step = prompts(d, {{.tokens = 512, .context_before = 0, .last = true}});
  // 2 x 512 tokens x 24 layers x (1024 x 3 x 16384, 1024 x 65536)
  CHECK(flops_of(step, "encoder_qkv_proj") == 2.0 * 512 * 24 * 1024 * 3 * 16384);
  CHECK(flops_of(step, "encoder_up_proj") + flops_of(step, "encoder_gate_up_proj") == 2.0 * 512 * 24 * 1024 * 65536);
  // all 512 x 512 pairs, 4 x 16384 FLOP each
  CHECK(flops_of(step, "encoder_attention") == 24.0 * 4 * 512 * 512 * 16384);
  CHECK(flops_of(step, "cross_kv_proj") == 2.0 * 512 * 24 * 1024 * 2 * 16384);
  CHECK(flops_of(step, "qkv_proj") == 2.0 * 24 * 1024 * 3 * 16384);
  CHECK(flops_of(step, "cross_q_proj") == 2.0 * 24 * 1024 * 16384);
  CHECK(flops_of(step, "cross_attention") == 24.0 * 4 * 512 * 16384);
}

TEST_CASE("a decode step of an encoder-decoder, bytes and FLOP by hand") {
  // T5-11B, 8 answers behind 512 tokens of input, 31 tokens each and the one that they began with
  const auto d = shipped::deploy("t5-11b", "h100-sxm", "trtllm", 1, Fidelity::kIdeal);
  const StepBreakdown step = StepModel(d).breakdown({.decodes = 8, .decode_context = 8 * 543, .prefills = {}});
  const double attention = 24.0 * 8 * 4 * 544 * 16384;
  CHECK(flops_of(step, "attention") == doctest::Approx(attention).epsilon(1e-12));
  // Products: 24 x (6 x 1024 x 16384 + 2 x 1024 x 65536) and the head
  const double products = 2.0 * 8 * (24.0 * (6.0 * 1024 * 16384 + 2.0 * 1024 * 65536) + 1024.0 * 32128);
  CHECK(step.flops.base() == doctest::Approx(products + attention).epsilon(1e-9));
}

TEST_CASE("each of Whisper's prompts has one window, encoded together") {
  const auto d = shipped::deploy("whisper-large-v3", "h100-sxm", "vllm", 1, Fidelity::kIdeal);
  const StepBreakdown one = prompts(d, {{.tokens = 1504}});
  const StepBreakdown four = prompts(d, std::vector<PrefillChunk>(4, {.tokens = 1504}));
  CHECK(flops_of(one, "qkv_proj") == 2.0 * 4 * 32 * 1280 * 3 * 1280);
  CHECK(flops_of(one, "cross_kv_proj") == 2.0 * 1500 * 32 * 1280 * 2 * 1280);
  CHECK(flops_of(four, "encoder_qkv") == doctest::Approx(4 * flops_of(one, "encoder_qkv")).epsilon(1e-12));
  CHECK(four.time < one.time * 4.0);
}

TEST_CASE("cost and breakdown of an encoder-decoder's step agree") {
  for (const char* model : {"t5-11b", "whisper-large-v3", "bart-large-cnn"}) {
    const auto d = shipped::deploy(model, "h100-sxm", "trtllm");
    const std::array<PrefillChunk, 2> chunks{{{.tokens = 1510}, {.tokens = 1530}}};
    const StepBatch batch{.decodes = 5, .decode_context = 5 * 1600, .query_len = 1, .prefills = chunks};
    StepModel steps(d);
    const StepCost cost = steps.cost(batch);
    const StepBreakdown step = steps.breakdown(batch);
    CHECK(step.flops.base() == doctest::Approx(cost.flops.base()).epsilon(1e-6));
    CHECK(step.time.base() == doctest::Approx(cost.time.base()).epsilon(1e-6));
    CHECK(step.gpu_time.base() <= step.time.base() * (1 + 1e-9));
  }
}

namespace {

/// An encoder-decoder of texts, and what its steps compute, written apart from the simulator.
struct Plain {
  double width, heads, head, inter, encoder, decoder, words;
  bool gated;

  std::string config() const {
    return fmt::format(
        "{{model_type: t5, d_model: {}, num_heads: {}, d_kv: {}, d_ff: {}, num_layers: {}, num_decoder_layers: {}, "
        "vocab_size: {}, feed_forward_proj: {}}}",
        width, heads, head, inter, encoder, decoder, words, gated ? "gated-gelu" : "relu");
  }
  double projection() const { return width * heads * head; }
  double block() const { return (gated ? 3 : 2) * width * inter; }
  double pairs(double count) const { return 4 * count * heads * head; }
  /// FLOP of one token of an answer, without attention.
  double token() const { return 2 * (decoder * (6 * projection() + block()) + width * words); }
  double prompt(double tokens) const {
    const double encoding = encoder * (2 * tokens * (4 * projection() + block()) + pairs(tokens * tokens)) +
                            decoder * 4 * tokens * projection();
    return encoding + token() + decoder * pairs(1 + tokens);
  }
  /// `context`: tokens of input and answer in all caches; every answer began with one more.
  double decode(double sequences, double context) const {
    return sequences * token() + decoder * pairs(context + sequences);
  }
};

}  // namespace

TEST_CASE("steps of 500 random encoder-decoders compute what a plain sum says") {
  Random random(24);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return static_cast<double>(random.uniform_integer(low, high));
  };
  const auto shipped = shipped::deploy("t5-11b", "h100-sxm", "trtllm", 1, Fidelity::kIdeal);
  for (int n = 0; n < scenarios(500); ++n) {
    const Plain plain{.width = 16 * pick(1, 64),
                      .heads = pick(1, 32),
                      .head = 8 * pick(1, 16),
                      .inter = 16 * pick(1, 256),
                      .encoder = pick(1, 30),
                      .decoder = pick(1, 30),
                      .words = pick(10, 50000),
                      .gated = random.uniform() < 0.5};
    auto d = std::make_shared<Deployment>(*shipped);
    d->model = parse_model(parse_config_text(plain.config(), "config.json"));
    d->precision = d->model.precision;
    std::vector<PrefillChunk> chunks;
    double expected = 0;
    for (int i = static_cast<int>(pick(1, 4)); i > 0; --i) {
      chunks.push_back({.tokens = static_cast<int>(pick(1, 2000))});
      expected += plain.prompt(chunks.back().tokens);
    }
    const auto decodes = static_cast<int>(pick(0, 40));
    const double context = decodes * pick(2, 3000);
    if (decodes > 0) expected += plain.decode(decodes, context);
    const StepBreakdown step =
        StepModel(d).breakdown({.decodes = decodes, .decode_context = context, .query_len = 1, .prefills = chunks});
    INFO(n, " ", plain.config());
    REQUIRE(step.flops.base() == doctest::Approx(expected).epsilon(1e-9));
  }
}
