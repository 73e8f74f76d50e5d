// Latent attention of prompts, expanded to heads.

#include <array>

#include "hw/kernels/latent/latent_kernel.h"

namespace roofcast::attention {

std::span<const Parameter<LatentPrefillParameters>> LatentPrefillParameters::fields() {
  using P = LatentPrefillParameters;
  using enum Transfer;
  static constexpr std::array<Parameter<P>, 11> kFields{{
      {"launch_us", &P::launch_us, 0.0, 30.0, kLaunch,
       "launch of the cache write, the attention kernel and its set-up"},
      {"eager_device_us", &P::eager_device_us, 0.0, 120.0, kHost,
       "gaps between kernels when a benchmark runs them eagerly"},
      {"eager_host_us", &P::eager_host_us, 0.0, 500.0, kHost,
       "host time of an eager call, a lower bound in benchmarks"},
      {"tile_us", &P::tile_us, 0.0, 12.0, kCycles, "start and end of a tile"},
      {"compute_fraction", &P::compute_fraction, 0.1, 1.0, kKept, "of the datasheet peak, softmax included"},
      {"imbalance", &P::imbalance, 1.0, 12.0, kKept, "1: the longest tile adds to the mean; large: the larger counts"},
      {"lone_slowdown", &P::lone_slowdown, 1.0, 3.0, kKept, "of a tile that is alone on its SM"},
      {"overlap", &P::overlap, 1.0, 8.0, kKept, "of tiles and memory; 1: they add, large: the larger counts"},
      {"bandwidth_fraction", &P::bandwidth_fraction, 0.1, 1.0, kMemoryShare,
       "of the datasheet bandwidth, reading q, k and v"},
      {"write_bandwidth_fraction", &P::write_bandwidth_fraction, 0.1, 1.0, kMemoryShare,
       "the same, writing keys and values"},
      {"token_ns", &P::token_ns, 0.0, 6.0, kCycles, "of the write, a token"},
  }};
  return kFields;
}

std::vector<FieldFacts> LatentPrefillKernel::fields() const {
  std::vector<FieldFacts> all = KernelOf::fields();
  for (FieldFacts& field : all) {
    const bool eager = field.name == "eager_device_us" || field.name == "eager_host_us";
    field.held = timed_eagerly() ? field.name == "launch_us" : eager;
  }
  return all;
}

void LatentPrefillKernel::follow(LatentPrefillParameters& p, const CarryOverCase& to) const {
  const double slower = to.from.exponentials_per_clock / to.to.exponentials_per_clock;
  p.compute_fraction = share_beside_instructions(p.compute_fraction, to.ratios.instructions * slower);
  p.compute_fraction = std::min(p.compute_fraction, to.how.matrix_limit);
}

Dtype narrow_products(const LatentHeads& heads, const GpuSpec& gpu) {
  if (gpu.architecture == Architecture::kAda) return Dtype::kBf16;
  return multiplies_fp8(gpu, heads.compute, heads.kv) ? Dtype::kFp8 : Dtype::kBf16;
}

namespace {

constexpr std::string_view kForm = "equations-attention.md#latent-prefill";

class TensorRt final : public LatentPrefillKernel {
 public:
  TensorRt(const KernelFacts& facts, double rows) : LatentPrefillKernel(facts), rows_(rows) {}
  double tile_rows() const override { return rows_; }
  Dtype format(const LatentHeads& heads, const GpuSpec& gpu) const override { return narrow_products(heads, gpu); }
  LatentPrefillParameters prior(const GpuSpec& gpu, Dtype products) const override {
    LatentPrefillParameters p;
    if (computes_fp8(gpu, products)) p.launch_us = 17, p.compute_fraction = 0.45, p.overlap = 1.3;
    return p;
  }

 private:
  double rows_;
};

/// vLLM's are timed eagerly.
class Vllm : public LatentPrefillKernel {
 public:
  using LatentPrefillKernel::LatentPrefillKernel;
  bool timed_eagerly() const override { return true; }
  LatentPrefillParameters prior(const GpuSpec& gpu, Dtype products) const override {
    LatentPrefillParameters p;
    if (computes_fp8(gpu, products)) p.launch_us = 17, p.overlap = 1.3;
    p.eager_device_us = 30, p.eager_host_us = gpu.architecture == Architecture::kAmpere ? 289 : 170, p.token_ns = 3.5;
    p.compute_fraction = 0.85, p.write_bandwidth_fraction = 0.4;
    return p;
  }
};

/// trtllm-gen: 16 bit whatever the cache, unless the engine asks for prompts in fp8, as SGLang does.
class TrtllmGenVllm final : public Vllm {
  using Vllm::Vllm;
  Dtype format(const LatentHeads& heads, const GpuSpec& gpu) const override {
    return heads.fp8_prompts ? narrow_products(heads, gpu) : Dtype::kBf16;
  }
};

/// FlashAttention-3 multiplies the heads in 16 bit, those expanded from an fp8 cache, too.
class FlashAttention3 final : public Vllm {
  using Vllm::Vllm;
  Dtype format(const LatentHeads& heads, const GpuSpec& gpu) const override { return narrow_products(heads, gpu); }
  Dtype products(const LatentHeads&, const GpuSpec&) const override { return Dtype::kBf16; }
};

class FlashAttention2 final : public Vllm {
  using Vllm::Vllm;
  double tile_keys() const override { return 64; }
  Dtype format(const LatentHeads&, const GpuSpec&) const override { return Dtype::kBf16; }
};

}  // namespace

const LatentPrefillKernel& fmha_v2_mla_wgmma_prefill() {
  static const TensorRt kernel({.name = "fmha_v2_mla_wgmma_prefill",
                                .help = "TensorRT-LLM's fused latent attention on Hopper, prompts",
                                .form = kForm,
                                .unexplained = kLatentPrefillUnexplained},
                               128);
  return kernel;
}
const LatentPrefillKernel& fmha_v2_mla_prefill() {
  static const TensorRt kernel({.name = "fmha_v2_mla_prefill",
                                .help = "TensorRT-LLM's fused latent attention by mma.sync, prompts",
                                .form = kForm,
                                .unexplained = kLatentPrefillUnexplained,
                                .lenders = {&fmha_v2_mla_wgmma_prefill(), &trtllm_gen_mla_prefill()}},
                               64);
  return kernel;
}
const LatentPrefillKernel& trtllm_gen_mla_prefill() {
  static const TensorRt kernel({.name = "trtllm_gen_mla_prefill",
                                .help = "trtllm-gen as TensorRT-LLM calls it, latent prompts",
                                .form = kForm,
                                .unexplained = kLatentPrefillUnexplained},
                               128);
  return kernel;
}
const LatentPrefillKernel& trtllm_gen_mla_vllm_prefill() {
  static const TrtllmGenVllm kernel({.name = "trtllm_gen_mla_vllm_prefill",
                                     .help = "trtllm-gen as vLLM calls it, latent prompts",
                                     .form = kForm,
                                     .unexplained = kLatentPrefillUnexplained,
                                     .lenders = {&trtllm_gen_mla_prefill()}});
  return kernel;
}
const LatentPrefillKernel& flash_attention_3_mla_prefill() {
  static const FlashAttention3 kernel({.name = "flash_attention_3_mla_prefill",
                                       .help = "FlashAttention-3 on Hopper, latent prompts",
                                       .form = kForm,
                                       .unexplained = kLatentPrefillUnexplained});
  return kernel;
}
const LatentPrefillKernel& flash_attention_2_mla_prefill() {
  static const FlashAttention2 kernel({.name = "flash_attention_2_mla_prefill",
                                       .help = "FlashAttention-2, latent prompts",
                                       .form = kForm,
                                       .unexplained = kLatentPrefillUnexplained,
                                       .lenders = {&flash_attention_3_mla_prefill(), &trtllm_gen_mla_vllm_prefill()}});
  return kernel;
}

}  // namespace roofcast::attention
