#include "sim/step/operator_error.h"
#include "hw/efficiency.h"

#include <doctest/doctest.h>

#include "base/config_library.h"
#include "hw/kernels/decode/decode_kernel.h"
#include "hw/kernels/experts/experts_kernel.h"
#include "hw/kernels/gemm/gemm_kernel.h"
#include "hw/kernels/latent/latent_kernel.h"
#include "hw/kernels/prefill/prefill_kernel.h"
#include "hw/kernels/state/state_kernel.h"
#include "hw/rooflines.h"
#include "sim/step/operator_cost.h"

using namespace roofcast;

namespace {

CalibratedGpu vllm_on(const char* gpu) { return load_gpu(load_named("hardware", gpu, {}), "vllm"); }

}  // namespace

TEST_CASE("operator error: a prompt that runs as decode is as uncertain as decode") {
  const CalibratedGpu h100 = vllm_on("h100-sxm");
  const Efficiency& e = h100.efficiency;
  const AttentionHeads heads{.heads = 32, .kv_heads = 8, .head_dim = 128, .value_dim = 128};
  const PrefillShape one{.batch = 1, .query_len = 1, .context_before = 100}, prompt{.batch = 1, .query_len = 1000};
  CHECK(record_of(PrefillWork{one, heads}, e, h100.spec) ==
        e.block(attention::flash_attention_3_decode(), Dtype::kBf16).record);
  CHECK(record_of(PrefillWork{prompt, heads}, e, h100.spec) ==
        e.block(attention::flash_attention_3_prefill(), Dtype::kBf16).record);

  const LatentHeads latents{.heads = 16};
  const PrefillShape chunk{.batch = 1, .query_len = 512}, longer{.batch = 1, .query_len = 513};
  const FitRecord* decode = e.block(attention::flash_attention_3_mla_decode(), Dtype::kBf16).record;
  const FitRecord* prefill = e.block(attention::flash_attention_3_mla_prefill(), Dtype::kBf16).record;
  CHECK(record_of(LatentPrefillWork{chunk, latents}, e, h100.spec) == decode);
  CHECK(record_of(LatentPrefillWork{longer, latents}, e, h100.spec) == prefill);
}

TEST_CASE("operator error: the record is that of the constants which price the operator") {
  const AttentionHeads narrow{.heads = 32, .kv_heads = 8, .head_dim = 128, .value_dim = 128, .kv = Dtype::kFp8};
  const PrefillWork prompt{{.batch = 1, .query_len = 1000}, narrow};
  for (const char* name : {"h100-sxm", "mi300x"}) {
    CAPTURE(name);
    const CalibratedGpu gpu = vllm_on(name);
    const Dtype products = gpu.spec.architecture == Architecture::kHopper ? Dtype::kFp8 : Dtype::kBf16;
    const Kernel& kernel = products == Dtype::kFp8 ? static_cast<const Kernel&>(attention::flash_attention_3_prefill())
                                                   : attention::flash_attention_2_prefill();
    CHECK(record_of(prompt, gpu.efficiency, gpu.spec) == gpu.efficiency.block(kernel, products).record);
  }
  const CalibratedGpu h100 = vllm_on("h100-sxm");
  const StateMixer convolution{.kind = StateMixer::Kind::kConvolution, .heads = 1024};
  const StateDecodeWork step{1, convolution};
  CHECK(record_of(step, h100.efficiency, h100.spec) == h100.efficiency.block(block_convolution(), Dtype::kBf16).record);
}

TEST_CASE("operator error: constants lent by another format leave more unexplained") {
  const CalibratedGpu h100 = vllm_on("h100-sxm");
  const Efficiency& e = h100.efficiency;
  const auto sd = [&](const Work& work) { return discrepancy_of(work, e, h100.spec); };
  GemmShape product{.m = 1, .n = 64, .k = 64};
  CHECK(sd(product) == e.block(cublaslt(), Dtype::kBf16).record->discrepancy);
  product.weights = product.activations = Dtype::kInt8;  // no int8 was measured
  CHECK(sd(product) > 0.2);
  MoeShape experts{.tokens = 8, .hidden = 64, .inter = 64, .top_k = 2, .experts = 8, .routing = {}};
  CHECK(sd(experts) == e.block(triton_experts(), Dtype::kBf16).record->discrepancy);
  experts.weights = experts.activations = Dtype::kFp8Block;
  experts.ep = 8;  // a kernel of its own
  CHECK(sd(experts) == e.block(flashinfer_cutlass_block_experts(), Dtype::kFp8Block).record->discrepancy);
  experts.weights = experts.activations = Dtype::kInt8;
  CHECK(sd(experts) > 0.5);
}

TEST_CASE("operators of a generic processor take a share of its roofline") {
  GpuSpec gpu;
  gpu.name = "tpu";
  gpu.architecture = Architecture::kGeneric;
  gpu.sm_count = 1;
  gpu.memory_bandwidth = BytesPerSecond(1e12);
  gpu.dense[static_cast<std::size_t>(Dtype::kBf16)] = FlopsPerSecond(100e12);
  const Efficiency none;
  const Machine machine{.gpu = &gpu, .efficiency = &none};
  // 2 x 8192^3 FLOP at 100 TFLOP/s = 10.995 ms, of which 0.65 is reached, and 5 us to start
  const Work square = GemmShape{.m = 8192, .n = 8192, .k = 8192};
  CHECK(cost_of(square, machine).time.in(kMicrosecond) == doctest::Approx(10995.116 / 0.65 + 5).epsilon(1e-6));
  // one row: the weights of 134.2 MB at 1 TB/s
  const Work row = GemmShape{.m = 1, .n = 8192, .k = 8192};
  CHECK(cost_of(row, machine).time.in(kMicrosecond) == doctest::Approx(134.2505 / 0.65 + 5).epsilon(1e-5));
  CHECK(cost_of(row, machine).bound == Bound::kMemory);
  CHECK(discrepancy_of(row, none, gpu) == assumed_roofline().discrepancy);
}
