// FlashAttention-2 and -3, as vLLM and SGLang call them, and FlashAttention-4 for heads wider than 256.

#include "hw/kernels/prefill/prefill_kernel.h"

namespace roofcast::attention {
namespace {

struct Constants3 : PrefillParameters {
  static std::span<const Parameter<Constants3>> fields();
};
std::span<const Parameter<Constants3>> Constants3::fields() {
  using P = Constants3;
  static constexpr auto kFields = [] {
    auto all = joined(kPrefillFields<P>, kWideHeadField<P>, kTokenThreadsField<P>,
                      std::array<Parameter<P>, 1>{{{"combine_us", &P::combine_us, 0.0, 10.0, Transfer::kCycles,
                                                    "merging partial outputs where the keys were split"}}});
    // Tiles are handed out longest first: nothing of these is left to fit.
    for (Parameter<P>& field : all) {
      field.held = field.name == "imbalance" || field.name == "lone_slowdown" || field.name == "window_blocks" ||
                   field.name == "overlap";
    }
    return all;
  }();
  return kFields;
}

/// Packs the query heads of a group into the rows of a tile.
class FlashAttention3 final : public PrefillKernelOf<Constants3> {
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
  Constants3 prior(const GpuSpec& gpu, Dtype products) const override {
    const bool fp8 = computes_fp8(gpu, products);
    Constants3 p;
    p.token_threads_ns = 4.0;
    p.launch_us = 11.5, p.tile_us = fp8 ? 1.1 : 1.9, p.score_ns = fp8 ? 0.015 : 0.031;
    p.compute_fraction = fp8 ? 0.38 : 1.0, p.wide_head_penalty = 0.5;
    p.imbalance = 12, p.lone_slowdown = 1, p.window_blocks = 0, p.overlap = 1;
    p.bandwidth_fraction = fp8 ? 0.45 : 0.9, p.write_bandwidth_fraction = fp8 ? 0.4 : 0.7, p.token_ns = 0.7;
    p.combine_us = 6;
    return p;
  }
};

struct Constants2 : PrefillParameters {
  static std::span<const Parameter<Constants2>> fields();
};
std::span<const Parameter<Constants2>> Constants2::fields() {
  static constexpr auto kFields = joined(kPrefillFields<Constants2>, kTokenThreadsField<Constants2>);
  return kFields;
}

class FlashAttention2 final : public PrefillKernelOf<Constants2> {
 public:
  using PrefillKernelOf::PrefillKernelOf;
  PrefillTraits traits(double, bool) const override { return {}; }
  bool multiplies_fp8() const override { return false; }
  Constants2 prior(const GpuSpec&, Dtype) const override {
    Constants2 p;
    p.token_threads_ns = 4.0;
    p.launch_us = 8, p.tile_us = 0.55, p.score_ns = 0.009, p.compute_fraction = 0.6, p.imbalance = 1.7;
    p.lone_slowdown = 1, p.window_blocks = 1, p.overlap = 1.1, p.bandwidth_fraction = 0.9, p.token_ns = 1.5;
    return p;
  }
};

constexpr std::string_view kForm = "equations-attention.md#prefill";

}  // namespace

const PrefillKernel& flash_attention_3_prefill() {
  static const FlashAttention3 kernel({.name = "flash_attention_3_prefill",
                                       .help = "FlashAttention-3 on Hopper, prompts",
                                       .form = kForm,
                                       .unexplained = kPrefillUnexplained});
  return kernel;
}
const PrefillKernel& flash_attention_4_prefill() {
  static const FlashAttention3 kernel({.name = "flash_attention_4_prefill",
                                       .help = "FlashAttention-4 on Hopper, prompts of heads wider than 256",
                                       .form = kForm,
                                       .unexplained = kPrefillUnexplained,
                                       .lenders = {&flash_attention_3_prefill()},
                                       .scored_apart = true});
  return kernel;
}
const PrefillKernel& flash_attention_2_prefill() {
  static const FlashAttention2 kernel({.name = "flash_attention_2_prefill",
                                       .help = "FlashAttention-2, prompts",
                                       .form = kForm,
                                       .unexplained = kPrefillUnexplained,
                                       .lenders = {&flash_attention_3_prefill(), &trtllm_gen_vllm_prefill()}});
  return kernel;
}

}  // namespace roofcast::attention
