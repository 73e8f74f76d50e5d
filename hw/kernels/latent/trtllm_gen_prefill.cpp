// trtllm-gen for latent prefill as vLLM and SGLang call it.

#include "hw/kernels/latent/latent_kernel.h"

namespace roofcast::attention {
namespace {

constexpr std::string_view kForm = "equations-attention.md#latent-prefill";

/// Runs in 16 bit whatever the cache, unless the engine requests prompts in fp8, as SGLang does.
class TrtllmGenVllm final : public LatentPrefillOfVllm {
  using LatentPrefillOfVllm::LatentPrefillOfVllm;
  Dtype format(const LatentHeads& heads, const GpuSpec& gpu) const override {
    return heads.fp8_prompts ? narrow_products(heads, gpu) : Dtype::kBf16;
  }
};

}  // namespace

const LatentPrefillKernel& trtllm_gen_mla_vllm_prefill() {
  static const TrtllmGenVllm kernel({.name = "trtllm_gen_mla_vllm_prefill",
                                     .help = "trtllm-gen as vLLM calls it, latent prefill",
                                     .form = kForm,
                                     .unexplained = kLatentPrefillUnexplained,
                                     .lenders = {&trtllm_gen_mla_prefill()}});
  return kernel;
}

}  // namespace roofcast::attention
