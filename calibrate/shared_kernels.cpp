#include "calibrate/shared_kernels.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "calibrate/rows/attention_loop.h"

namespace roofcast::calibrate {
namespace {

struct Shared {
  Maker from, to;
  std::string_view block, as;
};
constexpr Maker kTrt = Maker::kTrtllm, kVllm = Maker::kVllm;
constexpr std::array<Shared, 9> kSharedOnBlackwell{{
    {kTrt, kVllm, "trtllm_gen_mla_prefill.bf16", "trtllm_gen_mla_vllm_prefill.bf16"},
    {kTrt, kVllm, "trtllm_gen_mla_prefill.fp8", "trtllm_gen_mla_vllm_prefill.fp8"},
    {kTrt, kVllm, "trtllm_gen_mla_decode.bf16", "trtllm_gen_mla_vllm_decode.bf16"},
    {kTrt, kVllm, "trtllm_gen_mla_decode.fp8", "trtllm_gen_mla_vllm_decode.fp8"},
    {kTrt, kVllm, "trtllm_gen_mla_decode_loop.bf16", "trtllm_gen_mla_vllm_decode_loop.bf16"},
    {kTrt, kVllm, "trtllm_gen_mla_decode_loop.fp8", "trtllm_gen_mla_vllm_decode_loop.fp8"},
    {kTrt, kVllm, "custom_all_reduce.bf16", "fused_all_reduce.bf16"},
    {kVllm, kTrt, "cutlass_nvfp4.nvfp4", "cutlass_nvfp4.nvfp4"},
    {kVllm, kTrt, "trtllm_gen_block_experts.fp8_block", "trtllm_gen_block_experts.fp8_block"},
}};

const FittedConstants* find(const std::vector<FittedSet>& fitted, Maker maker, std::string_view block) {
  for (const FittedSet& of : fitted) {
    if (of.kernels != kernels_of(maker)) continue;
    const auto found =
        std::find_if(of.blocks.begin(), of.blocks.end(), [&](const FittedConstants& b) { return b.block == block; });
    if (found != of.blocks.end()) return &*found;
  }
  return nullptr;
}

/// vLLM's latent attention is timed without a CUDA graph, TensorRT-LLM's with one, so the other's rows say nothing
/// about the time that this adds.
void expect_eager_timing(FittedConstants& loop, const GpuSpec& gpu) {
  const ConstantsBlock assumed = assumed_attention_loop(attention::trtllm_gen_mla_vllm_decode(), Dtype::kBf16, gpu);
  const EagerLoop& eager = KernelOf<LatentLoop>::in(assumed)->value;
  for (auto& [name, value] : loop.values) {
    if (name == "eager_device_us") value = eager.eager_device_us;
    if (name == "eager_host_us") value = eager.eager_host_us;
  }
}

/// vLLM uses its own kernel above TensorRT-LLM's limit, up to 64 MiB (sim/step/deployment.cpp) or 67.11 MB.
void lift_size_limit(FittedConstants& block) {
  for (auto& [name, value] : block.values) {
    if (name == "size_limit_mb") value = 68.0;
  }
}

}  // namespace

std::vector<FittedSet> shared_constants(const std::vector<FittedSet>& fitted, const GpuSpec& gpu) {
  std::vector<FittedSet> out;
  if (gpu.architecture != Architecture::kBlackwell) return out;
  for (const Shared& shared : kSharedOnBlackwell) {
    const FittedConstants* source = find(fitted, shared.from, shared.block);
    if (source == nullptr || find(fitted, shared.to, shared.as) != nullptr) continue;
    FittedConstants copy = *source;
    copy.block = shared.as;
    copy.record.provenance = Provenance::kCarriedOver;
    if (shared.as.starts_with("trtllm_gen_mla_vllm_decode_loop")) expect_eager_timing(copy, gpu);
    if (shared.as.starts_with("fused_all_reduce")) lift_size_limit(copy);
    out.push_back({kernels_of(shared.to), {std::move(copy)}});
  }
  return out;
}

}  // namespace roofcast::calibrate
