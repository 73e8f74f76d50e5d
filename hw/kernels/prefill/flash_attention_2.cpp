// FlashAttention-2 for prefill.

#include "hw/kernels/prefill/prefill_kernel.h"

namespace roofcast::attention {
namespace {

struct Constants : PrefillParameters {
  static std::span<const Parameter<Constants>> fields();
};
std::span<const Parameter<Constants>> Constants::fields() {
  static constexpr auto kFields = joined(kPrefillFields<Constants>, kTokenThreadsField<Constants>);
  return kFields;
}

class FlashAttention2 final : public PrefillKernelOf<Constants> {
 public:
  using PrefillKernelOf::PrefillKernelOf;
  PrefillTraits traits(double, bool) const override { return {}; }
  bool multiplies_fp8() const override { return false; }
  Constants prior(const GpuSpec&, Dtype) const override {
    Constants p;
    p.token_threads_ns = 4.0;
    p.launch_us = 8, p.tile_us = 0.55, p.score_ns = 0.009, p.compute_fraction = 0.6, p.imbalance = 1.7;
    p.lone_slowdown = 1, p.window_blocks = 1, p.overlap = 1.1, p.bandwidth_fraction = 0.9, p.token_ns = 1.5;
    return p;
  }
};

}  // namespace

const PrefillKernel& flash_attention_2_prefill() {
  static const FlashAttention2 kernel({.name = "flash_attention_2_prefill",
                                       .help = "FlashAttention-2, prompts",
                                       .form = "equations-attention.md#prefill",
                                       .unexplained = kPrefillUnexplained,
                                       .lenders = {&flash_attention_3_prefill(), &trtllm_gen_vllm_prefill()}});
  return kernel;
}

}  // namespace roofcast::attention
