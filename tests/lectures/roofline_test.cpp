// Ridge points and intensities.

#include "hw/kernels/attention.h"
#include "hw/kernels/gemm.h"
#include "hw/kernels/latent_attention.h"
#include "lecture.h"
#include "sim/plan/lectures/intensity.h"
#include "sim/step/deployment.h"

using namespace lecture;

namespace {

FlopsPerByte ridge(const std::string& gpu) {
  const auto d = deploy("llama-2-7b", gpu);
  return ridge_point(d->gpu.peak(Dtype::kBf16), d->gpu.memory_bandwidth);
}

double intensity(const Cost& cost) { return cost.flops / cost.bytes / FlopsPerByte(1); }

/// The tool's own GEMM: tokens x 4096 -> 11008, Llama-2-7B's up projection.
Cost up_projection(const Machine& machine, double tokens) {
  return gemm({.m = tokens, .n = 11008, .k = 4096}, machine);
}

}  // namespace

TEST_CASE("ridge point of an H100: 989e12 / 3.35e12 = 295") {
  CHECK(ridge("h100-sxm").base() == doctest::Approx(295.22).epsilon(1e-4));
}

TEST_CASE("ridge point of an A100: 312e12 / 2.039e12 = 153") {
  CHECK(ridge("a100-sxm").base() == doctest::Approx(153).epsilon(0.002));
}

TEST_CASE("matmul intensity, D = 4096, F = 11008") {
  // 2 t D F / (2 t (D + F) + 2 D F)
  CHECK(matmul_intensity(1, 4096, 11008).base() == doctest::Approx(0.99966).epsilon(1e-4));
  CHECK(matmul_intensity(295, 4096, 11008).base() == doctest::Approx(268.5).epsilon(1e-3));  // a lecture rounds to 270
  CHECK(matmul_intensity(4096, 4096, 11008).base() == doctest::Approx(1727).epsilon(1e-3));  // and prints 2731 here
  const auto d = deploy("llama-2-7b", "h100-sxm");
  for (double tokens : {1.0, 64.0, 295.0, 4096.0}) {
    CHECK(intensity(up_projection(d->machine(), tokens)) ==
          doctest::Approx(matmul_intensity(tokens, 4096, 11008).base()).epsilon(1e-9));
  }
}

TEST_CASE("quiz: at B = 64 the MLP is bound by memory, at 22 % of the peak") {
  // 62.7 FLOP/B (the formula's B T = 64 less activations) / 295.2 = 0.21
  const auto d = deploy("llama-2-7b", "h100-sxm");
  const Cost cost = up_projection(d->machine(), 64);
  CHECK(cost.bound == Bound::kMemory);
  CHECK(cost.flops / cost.time / d->gpu.peak(Dtype::kBf16) == within(64 / 295.2, 0.03));
  CHECK(up_projection(d->machine(), 1024).bound == Bound::kCompute);
}

TEST_CASE("more than 295 tokens are needed, and a few more than the rule of thumb says") {
  // 1 / I = 1 / t + 1 / D + 1 / F:  t = 1 / (1 / 295.2 - 1 / 4096 - 1 / 11008) = 328
  const auto d = deploy("llama-2-7b", "h100-sxm");
  CHECK(up_projection(d->machine(), 327).bound == Bound::kMemory);
  CHECK(up_projection(d->machine(), 329).bound == Bound::kCompute);
}

TEST_CASE("attention intensity: S T / (S + T) for MHA") {
  CHECK(attention_intensity(4096, 4096).base() ==
        doctest::Approx(2048));  // prefill, S / 2; causal masks halve the work
  CHECK(attention_intensity(4096, 1).base() == doctest::Approx(4096.0 / 4097));
  CHECK(attention_intensity(1e6, 1).base() < 1.0);
}

TEST_CASE("attention intensity with groups: G S T / (S + G T), so decode is not always below 1") {
  CHECK(attention_intensity(4096, 1, 8).base() == doctest::Approx(8 * 4096.0 / (4096 + 8)));  // Llama-2-70B: 7.98
  const auto d = deploy("llama-2-70b", "h100-sxm");
  const AttentionHeads gqa{.heads = 64, .kv_heads = 8};
  for (double batch : {1.0, 64.0}) {  // of no help: every sequence reads its own cache
    const Cost cost = attention_decode({.batch = batch, .mean_context = 4096, .max_context = 4096}, gqa, d->machine());
    CHECK(intensity(cost) == within(7.98, 0.001));
  }
}

TEST_CASE("a causal prefill does half of the products") {
  const auto d = deploy("llama-2-13b", "h100-sxm");
  const AttentionHeads mha{.heads = 40, .kv_heads = 40};
  const Cost cost = attention_prefill({.batch = 1, .query_len = 4096}, mha, d->machine());
  CHECK(cost.flops.base() == within(4.0 * 4096 * 4096 * 5120 / 2, 0.001));
  CHECK(intensity(cost) == within(1024, 0.001));
}

TEST_CASE("absorbed MLA with 128 heads: 128 x 2 x 1088 FLOP over 576 x 2 bytes = 242 FLOP/B") {
  CHECK(latent_intensity(128).base() == doctest::Approx(128 * 2 * 1088 / (576.0 * 2)));
  const auto d = deploy("deepseek-v3", "h100-sxm");
  const LatentHeads heads{.heads = 128};
  const Cost cost = latent_decode({.batch = 16, .mean_context = 65536, .max_context = 65536}, heads, d->machine());
  CHECK(intensity(cost) == within(242));
}
