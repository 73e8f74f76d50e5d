// Latent prefill: fmha_v2, TensorRT-LLM's fused attention, and trtllm-gen as TensorRT-LLM calls it.

#include "hw/kernels/latent/latent_kernel.h"

namespace roofcast::attention {
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

}  // namespace

const LatentPrefillKernel& fmha_v2_mla_wgmma_prefill() {
  static const TensorRt kernel({.name = "fmha_v2_mla_wgmma_prefill",
                                .help = "TensorRT-LLM's fused attention on Hopper, latent prefill",
                                .form = kForm,
                                .unexplained = kLatentPrefillUnexplained},
                               128);
  return kernel;
}
const LatentPrefillKernel& fmha_v2_mla_prefill() {
  static const TensorRt kernel({.name = "fmha_v2_mla_prefill",
                                .help = "TensorRT-LLM's fused attention by mma.sync, latent prefill",
                                .form = kForm,
                                .unexplained = kLatentPrefillUnexplained,
                                .lenders = {&fmha_v2_mla_wgmma_prefill(), &trtllm_gen_mla_prefill()}},
                               64);
  return kernel;
}
const LatentPrefillKernel& trtllm_gen_mla_prefill() {
  static const TensorRt kernel({.name = "trtllm_gen_mla_prefill",
                                .help = "trtllm-gen as TensorRT-LLM calls it, latent prefill",
                                .form = kForm,
                                .unexplained = kLatentPrefillUnexplained},
                               128);
  return kernel;
}

}  // namespace roofcast::attention
