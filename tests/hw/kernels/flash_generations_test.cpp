#include "hw/kernels/flash_generations.h"

#include <doctest/doctest.h>

#include "base/config_library.h"
#include "hw/gpu_spec.h"

using namespace roofcast;

namespace {

GpuSpec gpu_named(const std::string& name) {
  return parse_gpu_spec(ConfigReader(load_named("hardware", name, SourceLocation{"test", 0, 0}), "a GPU"));
}

/// 16 sequences of 16,384 tokens in 16 heads: a layer as the papers time it.
double reached_tflops(AttentionKernel kernel, const GpuSpec& gpu, Dtype cache = Dtype::kBf16) {
  AttentionHeads heads{.heads = 16, .kv_heads = 16, .kv = cache, .kernel = kernel};
  if (cache == Dtype::kFp8) heads.compute = Dtype::kFp8;
  const Machine machine{.gpu = &gpu, .fidelity = Fidelity::kCalibrated};
  const Cost cost = attention_prefill({.batch = 16, .query_len = 16384}, heads, machine);
  return cost.flops.base() / cost.time.base() / 1e12;
}

Cost prefill(AttentionKernel kernel, const GpuSpec& gpu, double tokens, Fidelity fidelity = Fidelity::kCalibrated) {
  const AttentionHeads heads{.heads = 32, .kv_heads = 8, .kernel = kernel};
  return attention_prefill({.batch = 1, .query_len = tokens}, heads, {.gpu = &gpu, .fidelity = fidelity});
}

}  // namespace

TEST_CASE("flash generations: what the papers reached of each GPU") {
  const GpuSpec a100 = gpu_named("a100-sxm"), h100 = gpu_named("h100-sxm");
  const double first = reached_tflops(AttentionKernel::kFlash1, a100) / 312;
  CHECK(first >= 0.25);  // "25-40 % of the theoretical maximum" (arXiv:2307.08691, abstract)
  CHECK(first <= 0.40);
  const double second = reached_tflops(AttentionKernel::kFlash2, a100) / 312;
  CHECK(second >= 0.50);  // "50-73 %" (there)
  CHECK(second <= 0.73);
  CHECK(second / first >= 1.5);  // "around 2x" (there)
  // arXiv:2407.08608, abstract: FlashAttention-2 35 % of an H100, FlashAttention-3 up to 740 TFLOP/s, close to 1200 in
  // fp8
  CHECK(reached_tflops(AttentionKernel::kFlash2, h100) == doctest::Approx(346).epsilon(0.2));
  CHECK(reached_tflops(AttentionKernel::kFlash3, h100) == doctest::Approx(740).epsilon(0.15));
  CHECK(reached_tflops(AttentionKernel::kFlash3, h100, Dtype::kFp8) == doctest::Approx(1200).epsilon(0.15));
}

TEST_CASE("flash generations: bytes of one head by hand") {
  // 1024 tokens, d = 128: pairs 524,800. K and V 2 x 1024 x 256 = 524,288 B; the second moves Q and O once, 524,288 B
  // too; the first comes back to a row for each of 128 keys: 4100 visits of 256 + 1024 + 16 B.
  const GpuSpec gpu = gpu_named("a100-sxm");
  AttentionHeads heads{.heads = 1, .kv_heads = 1, .kernel = AttentionKernel::kFlash2};
  const Machine machine{.gpu = &gpu, .fidelity = Fidelity::kIdeal};
  const PrefillShape one{.batch = 1, .query_len = 1024};
  CHECK(attention_prefill(one, heads, machine).bytes.base() == 2 * 524288.0);
  heads.kernel = AttentionKernel::kFlash1;
  CHECK(attention_prefill(one, heads, machine).bytes.base() == 524288.0 + 4100 * 1296.0);
  CHECK(attention_prefill(one, heads, machine).flops.base() == 524800.0 * 512);
}

TEST_CASE("flash generations: a lone sequence of few heads leaves SMs idle in the first alone") {
  const GpuSpec gpu = gpu_named("a100-sxm");
  // 32 heads on 108 SMs: one block of threads a head, three quarters of the SMs wait
  const double first = prefill(AttentionKernel::kFlash1, gpu, 8192).time.base();
  const double second = prefill(AttentionKernel::kFlash2, gpu, 8192).time.base();
  CHECK(first > 5 * second);
  for (const double tokens : {1.0, 2.0, 127.0, 128.0, 129.0, 4096.0, 100000.0}) {
    INFO(tokens);
    for (const AttentionKernel kernel : {AttentionKernel::kFlash1, AttentionKernel::kFlash2}) {
      CHECK(prefill(kernel, gpu, tokens).time > prefill(kernel, gpu, tokens, Fidelity::kIdeal).time);
      CHECK(prefill(kernel, gpu, tokens).time <= prefill(kernel, gpu, tokens + 1).time);
    }
    CHECK(prefill(AttentionKernel::kFlash1, gpu, tokens).time >= prefill(AttentionKernel::kFlash2, gpu, tokens).time);
  }
}

TEST_CASE("flash generations: which GPUs run them, and who splits a context") {
  const auto runs = [](AttentionKernel kernel, const char* gpu) {
    return !cannot_run(*generation_of(kernel), gpu_named(gpu));
  };
  CHECK(runs(AttentionKernel::kFlash1, "a100-sxm"));
  CHECK(runs(AttentionKernel::kFlash2, "h100-sxm"));
  CHECK(runs(AttentionKernel::kFlash3, "h100-sxm"));
  CHECK_FALSE(runs(AttentionKernel::kFlash3, "a100-sxm"));
  CHECK_FALSE(runs(AttentionKernel::kFlash2, "b200-sxm"));
  CHECK_FALSE(runs(AttentionKernel::kFlash2, "mi300x"));
  CHECK(generation_of(AttentionKernel::kFlash) == nullptr);
  const GpuSpec gpu = gpu_named("h100-sxm");
  AttentionHeads heads{.heads = 32, .kv_heads = 8};
  const DecodeShape lone{.batch = 1, .mean_context = 100000, .max_context = 100000};
  const Machine machine{.gpu = &gpu, .fidelity = Fidelity::kCalibrated};
  const auto time = [&](AttentionKernel kernel) {
    heads.kernel = kernel;
    return attention_decode(lone, heads, machine).time;
  };
  CHECK(time(AttentionKernel::kFlash3) == time(AttentionKernel::kFlash));
  CHECK(time(AttentionKernel::kFlash2) == time(AttentionKernel::kUnsplit));
  CHECK(time(AttentionKernel::kFlash1) == time(AttentionKernel::kUnsplit));
}
