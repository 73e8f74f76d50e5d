// Latent decode: FlashMLA on Hopper as TensorRT-LLM and as vLLM call it, and FlashAttention-3 over 16-bit latents.

#include "hw/kernels/latent/decode_path.h"

namespace roofcast::attention {
namespace {

constexpr std::string_view kForm = "equations-attention.md#latent-decode";

/// FlashMLA and similar kernels on Hopper.
class FlashMla final : public LatentDecodeKernel {
 public:
  FlashMla(const KernelFacts& facts, bool by_vllm, bool in_pairs, double absorbed)
      : LatentDecodeKernel(facts), by_vllm_(by_vllm), in_pairs_(in_pairs), absorbed_(absorbed) {}
  LatentPath path(const DecodeShape& s, const LatentHeads& h, const LatentDecodeParameters& p,
                  const Chip& chip) const override {
    return balanced_path(s, h, p, chip, {.grain = element_bits(h.kv) <= 8 ? 128.0 : 64.0, .in_pairs = in_pairs_});
  }
  double absorbed_queries() const override { return absorbed_; }
  LatentDecodeParameters prior(const GpuSpec& gpu, Dtype kv) const override {
    return by_vllm_ ? vllm_latent_decode_prior(gpu, kv) : latent_decode_prior(gpu, kv);
  }

 private:
  bool by_vllm_, in_pairs_;
  double absorbed_;
};

}  // namespace

const LatentDecodeKernel& flash_mla_decode() {
  static const FlashMla kernel({.name = "flash_mla_decode",
                                .help = "FlashMLA on Hopper as TensorRT-LLM calls it, latent decode",
                                .form = kForm,
                                .unexplained = kLatentDecodeUnexplained},
                               false, false, 0);
  return kernel;
}
const LatentDecodeKernel& flash_mla_vllm_decode() {
  static const FlashMla kernel({.name = "flash_mla_vllm_decode",
                                .help = "FlashMLA on Hopper as vLLM calls it, fp8 caches, latent decode",
                                .form = kForm,
                                .unexplained = kLatentDecodeUnexplained},
                               true, false, 128);
  return kernel;
}
const LatentDecodeKernel& flash_attention_3_mla_decode() {
  static const FlashMla kernel({.name = "flash_attention_3_mla_decode",
                                .help = "FlashAttention-3 on Hopper, 16-bit latents, latent decode",
                                .form = kForm,
                                .unexplained = kLatentDecodeUnexplained,
                                .lenders = {&trtllm_gen_mla_vllm_decode()}},
                               true, true, 512);
  return kernel;
}

}  // namespace roofcast::attention
