// trtllm-gen for latent decode on data-center Blackwell.

#include "hw/kernels/latent/decode_path.h"

namespace roofcast::attention {
namespace {

constexpr std::string_view kForm = "equations-attention.md#latent-decode";

class TrtllmGen final : public LatentDecodeKernel {
 public:
  TrtllmGen(const KernelFacts& facts, bool by_vllm) : LatentDecodeKernel(facts), by_vllm_(by_vllm) {}
  LatentPath path(const DecodeShape& s, const LatentHeads& h, const LatentDecodeParameters& p,
                  const Chip& chip) const override {
    return balanced_path(s, h, p, chip, {.grain = 256, .most_splits = 16});
  }
  /// Its times show that 17 to 32 heads read the cache twice.
  double read_again(const DecodeShape&, const LatentHeads& h, const LatentDecodeParameters& p) const override {
    return h.heads > 16 && h.heads <= 32 ? p.reread : 0.0;
  }
  double absorbed_queries() const override { return by_vllm_ ? 1 : 0; }
  LatentDecodeParameters prior(const GpuSpec& gpu, Dtype kv) const override {
    return by_vllm_ ? vllm_latent_decode_prior(gpu, kv) : latent_decode_prior(gpu, kv);
  }

 private:
  bool by_vllm_;
};

}  // namespace

const LatentDecodeKernel& trtllm_gen_mla_decode() {
  static const TrtllmGen kernel({.name = "trtllm_gen_mla_decode",
                                 .help = "trtllm-gen as TensorRT-LLM calls it, latent decode",
                                 .form = kForm,
                                 .unexplained = kLatentDecodeUnexplained},
                                false);
  return kernel;
}
const LatentDecodeKernel& trtllm_gen_mla_vllm_decode() {
  static const TrtllmGen kernel({.name = "trtllm_gen_mla_vllm_decode",
                                 .help = "trtllm-gen as vLLM calls it, latent decode",
                                 .form = kForm,
                                 .unexplained = kLatentDecodeUnexplained,
                                 .lenders = {&trtllm_gen_mla_decode()}},
                                true);
  return kernel;
}

}  // namespace roofcast::attention
