// Prefill by FlashAttention-3, and by FlashAttention-4 for heads wider than 256.

#include "hw/kernels/prefill/prefill_kernel.h"

namespace roofcast::attention {
namespace {

struct Constants : PrefillParameters {
  static std::span<const Parameter<Constants>> fields();
};
std::span<const Parameter<Constants>> Constants::fields() {
  using P = Constants;
  static constexpr auto kFields = [] {
    auto all = joined(kPrefillFields<P>, kWideHeadField<P>, kTokenThreadsField<P>,
                      std::array<Parameter<P>, 1>{{{"combine_us", &P::combine_us, 0.0, 10.0, Transfer::kCycles,
                                                    "merging partial outputs if the keys were split"}}});
    // Tiles are scheduled longest first, so these constants have nothing to fit.
    for (Parameter<P>& field : all) {
      field.fixed = field.member == &P::imbalance || field.member == &P::lone_slowdown ||
                    field.member == &P::window_blocks || field.member == &P::overlap;
    }
    return all;
  }();
  return kFields;
}

/// Packs the query heads of a group into the rows of a tile.
class FlashAttention3 final : public PrefillKernelOf<Constants> {
 public:
  using PrefillKernelOf::PrefillKernelOf;
  PrefillTraits traits(double d, bool fp8) const override {
    return {.tile_rows = d <= 64 ? 192.0 : 128.0,
            .tile_keys = fp8        ? (d > 192 ? 128.0 : 160.0)
                         : d <= 128 ? 128.0
                         : d <= 192 ? 96.0
                                    : 64.0,
            .packs_groups = true,
            .splits_keys = true,
            .persistent = true};
  }
  Constants prior(const GpuSpec& gpu, Dtype products) const override {
    const bool fp8 = computes_fp8(gpu, products);
    Constants p;
    p.token_threads_ns = 4.0;
    p.launch_us = 11.5, p.tile_us = fp8 ? 1.1 : 1.9, p.score_ns = fp8 ? 0.015 : 0.031;
    p.compute_fraction = fp8 ? 0.38 : 1.0, p.wide_head_penalty = 0.5;
    p.imbalance = 12, p.lone_slowdown = 1, p.window_blocks = 0, p.overlap = 1;
    p.bandwidth_fraction = fp8 ? 0.45 : 0.9, p.write_bandwidth_fraction = fp8 ? 0.4 : 0.7, p.token_ns = 0.7;
    p.combine_us = 6;
    return p;
  }
};

constexpr std::string_view kForm = "equations-attention.md#prefill";

}  // namespace

const PrefillKernel& flash_attention_3_prefill() {
  static const FlashAttention3 kernel({.name = "flash_attention_3_prefill",
                                       .help = "FlashAttention-3 on Hopper, prefill",
                                       .form = kForm,
                                       .unexplained = kPrefillUnexplained});
  return kernel;
}
const PrefillKernel& flash_attention_4_prefill() {
  static const FlashAttention3 kernel({.name = "flash_attention_4_prefill",
                                       .help = "FlashAttention-4 on Hopper, prefill, heads wider than 256",
                                       .form = kForm,
                                       .unexplained = kPrefillUnexplained,
                                       .lenders = {&flash_attention_3_prefill()},
                                       .scored_apart = true});
  return kernel;
}

}  // namespace roofcast::attention
