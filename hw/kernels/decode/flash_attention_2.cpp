// FlashAttention-2, and similar kernels that split every context.

#include "hw/kernels/decode/tiles.h"

namespace roofcast::attention {
namespace {

struct Constants : TileCosts {
  double swap_us = 6.0, ungrouped_slowdown = 1.8;
  static std::span<const Parameter<Constants>> fields();
};

std::span<const Parameter<Constants>> Constants::fields() {
  using P = Constants;
  using enum Transfer;
  static constexpr auto kFields = joined(
      kTileCostFields<P>,
      std::array<Parameter<P>, 2>{{
          {"swap_us", &P::swap_us, 0.0, 15.0, kCycles, "two copies that pack a group into the rows of a tile"},
          {"ungrouped_slowdown", &P::ungrouped_slowdown, 1.0, 4.0, kKept, "slowdown of a row without grouped queries"},
      }},
      kCacheReadFields<P>);
  return kFields;
}

Constants prior_of_kind() {
  Constants p;
  p.launch_us = 12.4, p.launch_head_dim_us = 0.1, p.head_ns = 0.25, p.tile_us = 3.7, p.compute_fraction = 0.95;
  p.bandwidth_fraction = 0.74, p.combine_us = 5.3;
  return p;
}

/// For one new token of grouped heads without a window, the heads of a group are packed into the rows of a tile, and
/// the context is split. Otherwise one block per query head reads the whole context. Source: Dao-AILab/flash-attention
/// (BSD-3), csrc/flash_attn/flash_api.cpp, mha_varlen_fwd: seqlenq_ngroups_swapped, and num_splits, which is set only
/// in that branch.
class FlashAttention2 final : public DecodeKernelOf<Constants> {
 public:
  FlashAttention2()
      : DecodeKernelOf({.name = "flash_attention_2_decode",
                        .help = "FlashAttention-2, new tokens",
                        .form = "equations-attention.md#decode",
                        .unexplained = kDecodeUnexplained,
                        .lenders = {&flash_attention_3_decode(), &trtllm_gen_vllm_decode()}}) {}
  bool multiplies_fp8() const override { return false; }
  Constants prior(const GpuSpec&, Dtype) const override { return prior_of_kind(); }

 private:
  /// A row without grouped queries waits for other work than its GEMMs: cycles, as in share_beside_instructions.
  void follow(Constants& p, const CarryOverCase& to) const override {
    DecodeKernelOf::follow(p, to);
    p.ungrouped_slowdown = 1.0 + (p.ungrouped_slowdown - 1.0) * to.ratios.instructions;
  }
  DecodeTime time_with(const DecodeCall& c, const Constants& p, const Chip& chip) const override {
    const bool folded = c.group > 1 && c.query_len == 1 && !c.windowed;
    TileGrid grid{folded ? c.units : c.heads, folded ? c.rows : c.query_len, 64, 1, 0};
    if (folded) grid.splits = fa2_splits(grid.tiles(), 2 * chip.sms, ceil_div(c.longest, 128));
    DecodeTime time = time_of(grid, c, p, chip, folded ? 1.0 : p.ungrouped_slowdown);
    if (folded && c.batch > 1 && c.kv_heads > 1) time.launch += p.swap_us * kMicrosecond;
    return time;
  }
};

/// FlashInfer without wgmma and tcgen05, flash_attn_with_kvcache, and the kernels of AMD GPUs: the rows of a group are
/// packed and contexts are split for every shape, by the number of visible keys. Source: flashinfer-ai/flashinfer
/// (Apache-2.0), include/flashinfer/attention/scheduler.cuh.
class FlashSplit final : public DecodeKernelOf<Constants> {
 public:
  FlashSplit()
      : DecodeKernelOf({.name = "flash_split_decode",
                        .help = "FlashInfer and flash_attn_with_kvcache: packed, split-KV, decode",
                        .form = "equations-attention.md#decode",
                        .unexplained = kDecodeUnexplained,
                        .lenders = {&flash_attention_2_decode()}}) {}
  bool multiplies_fp8() const override { return false; }
  Constants prior(const GpuSpec&, Dtype) const override { return prior_of_kind(); }

 private:
  DecodeTime time_with(const DecodeCall& c, const Constants& p, const Chip& chip) const override {
    TileGrid grid{c.units, c.rows, 64, 1, 0};
    grid.splits = fa2_splits(grid.tiles(), 2 * chip.sms, ceil_div(c.longest_visible, 128));
    return time_of(grid, c, p, chip, 1.0);
  }
};

}  // namespace

const DecodeKernel& flash_attention_2_decode() {
  static const FlashAttention2 kernel;
  return kernel;
}
const DecodeKernel& flash_split_decode() {
  static const FlashSplit kernel;
  return kernel;
}

}  // namespace roofcast::attention
