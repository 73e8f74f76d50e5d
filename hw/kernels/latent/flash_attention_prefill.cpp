// FlashAttention-3 and FlashAttention-2 for latent prefill.

#include "hw/kernels/latent/latent_kernel.h"

namespace roofcast::attention {
namespace {

constexpr std::string_view kForm = "equations-attention.md#latent-prefill";

/// FlashAttention-3 multiplies the heads in 16 bit, also those expanded from an fp8 cache.
class FlashAttention3 final : public LatentPrefillOfVllm {
  using LatentPrefillOfVllm::LatentPrefillOfVllm;
  Dtype format(const LatentHeads& heads, const GpuSpec& gpu) const override { return narrow_products(heads, gpu); }
  Dtype products(const LatentHeads&, const GpuSpec&) const override { return Dtype::kBf16; }
};

class FlashAttention2 final : public LatentPrefillOfVllm {
  using LatentPrefillOfVllm::LatentPrefillOfVllm;
  double tile_keys() const override { return 64; }
  Dtype format(const LatentHeads&, const GpuSpec&) const override { return Dtype::kBf16; }
};

}  // namespace

const LatentPrefillKernel& flash_attention_3_mla_prefill() {
  static const FlashAttention3 kernel({.name = "flash_attention_3_mla_prefill",
                                       .help = "FlashAttention-3 on Hopper, latent prefill",
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
