// fmha_v2, TensorRT-LLM's fused prefill attention.

#include "hw/kernels/prefill/prefill_kernel.h"

namespace roofcast::attention {
namespace {

constexpr std::string_view kForm = "equations-attention.md#prefill";

struct Constants : PrefillParameters {
  static std::span<const Parameter<Constants>> fields();
};
std::span<const Parameter<Constants>> Constants::fields() {
  static constexpr auto kFields = joined(kPrefillFields<Constants>, kWideHeadField<Constants>);
  return kFields;
}

/// Hopper's build (*_tma_ws_sm90) uses longer blocks of keys in fp8. mma.sync builds multiply in fp8 only if the
/// queries are fp8, and reach the 16-bit rate only at head dimensions 128 and 192: an L40S with a 16-bit peak of 362
/// TFLOP/s reaches 103 at 64 and 74 at 256, where 16 bit reaches 142 and 144 (aiconfigurator tables of TensorRT-LLM
/// 1.3).
class FmhaV2 final : public PrefillKernelOf<Constants> {
 public:
  FmhaV2(const KernelFacts& facts, bool wgmma) : PrefillKernelOf(facts), wgmma_(wgmma) {}
  PrefillTraits traits(double d, bool fp8) const override {
    PrefillTraits t{.tile_rows = 64, .tile_keys = fp8 && wgmma_ ? 256.0 : 64.0, .rewrites_queries = true};
    if (fp8 && !wgmma_) t.most_compute = d <= 64 ? kNarrowFp8 : d > 192 ? kWideFp8 : 1.0;
    return t;
  }
  bool wants_fp8_queries() const override { return !wgmma_; }
  Constants prior(const GpuSpec& gpu, Dtype products) const override {
    const bool fp8 = computes_fp8(gpu, products);
    Constants p;
    p.launch_us = 15, p.tile_us = 2.5, p.score_ns = fp8 ? 0.033 : 0.013, p.compute_fraction = fp8 ? 0.7 : 0.64;
    p.imbalance = 1.25, p.lone_slowdown = 1.6, p.window_blocks = 2.6, p.overlap = 2.5, p.token_ns = 0.01;
    p.launch_head_dim_us = 0.1, p.wide_head_penalty = fp8 ? 0.2 : 0.0;
    return p;
  }

 private:
  static constexpr double kNarrowFp8 = 0.3, kWideFp8 = 0.21;  ///< of the 16-bit peak
  bool wgmma_;
};

}  // namespace

const PrefillKernel& fmha_v2_wgmma_prefill() {
  static const FmhaV2 kernel({.name = "fmha_v2_wgmma_prefill",
                              .help = "TensorRT-LLM's fused attention on Hopper, prefill",
                              .form = kForm,
                              .unexplained = kPrefillUnexplained},
                             true);
  return kernel;
}
const PrefillKernel& fmha_v2_prefill() {
  static const FmhaV2 kernel({.name = "fmha_v2_prefill",
                              .help = "TensorRT-LLM's fused attention by mma.sync, prefill",
                              .form = kForm,
                              .unexplained = kPrefillUnexplained,
                              .lenders = {&fmha_v2_wgmma_prefill(), &trtllm_gen_prefill()}},
                             false);
  return kernel;
}

}  // namespace roofcast::attention
