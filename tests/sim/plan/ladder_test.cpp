#include "sim/plan/ladder.h"

#include <algorithm>

#include <doctest/doctest.h>

using namespace roofcast;

namespace {

Ladder ladder(const std::string& more = "", Fidelity fidelity = Fidelity::kIdeal) {
  const std::string yaml =
      "model: llama-2-13b\ngpu: h100-sxm\nworkload:\n  arrivals: {process: all_at_once}\n"
      "  prompt_tokens: {distribution: fixed, value: 512}\n  output_tokens: {distribution: uniform, min: 16, max: "
      "240}\n  requests: 64\n";
  return climb(parse_config_text(yaml + more, "test.yaml"), fidelity, {.concurrency = 16, .requests = 48});
}

const Rung& rung(const Ladder& l, const std::string& name) {
  const auto at = std::find_if(l.rungs.begin(), l.rungs.end(), [&](const Rung& r) { return r.name == name; });
  REQUIRE(at != l.rungs.end());
  return *at;
}

}  // namespace

TEST_CASE("the rungs of an ideal 13B") {
  const Ladder l = ladder();
  REQUIRE(l.rungs.size() == 11);
  // Without a cache every token is a pass over 512 to 640 tokens, bound by products: 989 / 67 TFLOP/s = 14.8, less what
  // the N x N traffic keeps; the lectures' 2x is for passes bound by weights.
  CHECK(rung(l, "16 bit").throughput_gain > 10);
  CHECK(rung(l, "16 bit").throughput_gain < 14.8);
  // a pass over 576 tokens, 15 ms of products and naive attention, against 7.8 ms of weights: 2
  CHECK(rung(l, "KV cache").throughput_gain > 1.5);
  CHECK(rung(l, "FlashAttention").throughput_gain >= 1.0);
  CHECK(rung(l, "quantization").throughput_gain == doctest::Approx(1.95).epsilon(0.05));  // fp8, and the head stays
  CHECK(rung(l, "speculation").throughput_gain > 1.5);
  CHECK(rung(l, "static batching").throughput_gain > 1.0);
  CHECK(rung(l, "continuous batching").throughput_gain > 1.2);  // outputs of 16 to 240 in one batch
  CHECK(rung(l, "tensor parallel").gpus == 2);
}

TEST_CASE("replicas and a narrow cache that the scenario asks for are on the ladder") {
  CHECK(rung(ladder("parallelism: {replicas: 2}\n"), "tensor parallel").gpus == 4);
  const Ladder narrow = ladder("precision: {kv_cache: fp8}\n");
  const Rung &cache = rung(narrow, "quantization"), &whole = rung(narrow, "KV cache");
  CHECK(cache.memory < whole.memory);
  CHECK(cache.memory.base() > 0.95 * whole.memory.base());  // the weights keep their 16 bit
}

TEST_CASE("narrow activations alone change nothing, so the rung of quantization takes fp8") {
  const Ladder l = ladder("precision: {activations: fp8}\n");
  CHECK(rung(l, "quantization").throughput_gain == doctest::Approx(1.95).epsilon(0.05));
}

TEST_CASE("gains multiply up to the last column") {
  const Ladder l = ladder();
  double product = 1;
  for (const Rung& r : l.rungs) {
    if (r.note.find("left out") == std::string::npos) product *= r.throughput_gain;
  }
  CHECK(l.rungs.back().note == "");
  CHECK(l.rungs.back().total_gain == doctest::Approx(product).epsilon(1e-9));
}

TEST_CASE("nothing to share: prefix caching changes nothing") {
  CHECK(rung(ladder(), "prefix caching").throughput_gain == doctest::Approx(1.0));
}

TEST_CASE("a shared prefix pays") {
  const Ladder l = ladder("  shared_prefix_tokens: 480\n", Fidelity::kCalibrated);
  CHECK(rung(l, "prefix caching").throughput_gain > 1.05);
}

TEST_CASE("without a cache memory is weights; 32 bits double them") {
  const Ladder l = ladder();
  CHECK(rung(l, "naive fp32").memory.in(kGigabyte) == doctest::Approx(4 * 13.016).epsilon(0.001));
  CHECK(rung(l, "16 bit").memory.in(kGigabyte) == doctest::Approx(2 * 13.016).epsilon(0.001));
}

TEST_CASE("a rung that does not fit says so, and TP makes room") {
  const Ladder l = ladder("parallelism: {tp: 4}\nprecision: bf16\n");
  CHECK(rung(l, "tensor parallel").gpus == 4);
  const std::string big =
      "model: llama-2-70b\ngpu: h100-sxm\nparallelism: {tp: 4}\nworkload:\n  arrivals: {process: all_at_once}\n"
      "  prompt_tokens: {distribution: fixed, value: 512}\n  output_tokens: {distribution: fixed, value: 64}\n  "
      "requests: 8\n";
  const Ladder b =
      climb(parse_config_text(big, "test.yaml"), Fidelity::kCalibrated, {.concurrency = 8, .requests = 16});
  CHECK_FALSE(rung(b, "16 bit").fits);
  CHECK(rung(b, "16 bit").note.find("does not fit") != std::string::npos);
  CHECK(rung(b, "tensor parallel").fits);
}

TEST_CASE("a ladder needs a workload") {
  CHECK_THROWS_AS(climb(parse_config_text("model: llama-2-13b\ngpu: h100-sxm\n", "test.yaml"), Fidelity::kIdeal, {}),
                  ConfigError);
}

TEST_CASE("a rung's prices: all of the bill over all tokens, and output's part of it over output") {
  const Ladder l = ladder();
  for (const Rung& r : l.rungs) {
    CAPTURE(r.name);
    if (r.simulated) continue;
    // one request at a time of 512 + 128 tokens on 2.29 USD/h or so: the same bill, asked of time
    const double of_request = r.usd_per_million_total_tokens * (512 + 128) / 1e6;
    CHECK(r.usd_per_million_output_tokens * 128 / 1e6 < of_request);
    CHECK(of_request / r.latency.base() ==
          doctest::Approx(l.rungs.front().usd_per_million_total_tokens * 640 / 1e6 / l.rungs.front().latency.base()));
  }
  const Rung &kv = rung(l, "KV cache"), &half = rung(l, "16 bit");
  CHECK(kv.cost_gain == doctest::Approx(half.usd_per_million_total_tokens / kv.usd_per_million_total_tokens));
}
