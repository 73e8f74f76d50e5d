// XQA, TensorRT-LLM's decode kernel on tensor cores.

#include <algorithm>
#include <array>
#include <cmath>

#include "hw/kernels/decode/decode_kernel.h"

namespace roofcast::attention {
namespace {

struct Constants : CacheReads {
  double launch_us = 9.0, launch_head_dim_us = 1.0, tile_us = 2.2, tile_growth = 0.3, tile_row_us = 0.012;
  double row_ns = 1.7, row_growth = 2.0, row_group = 0.4, row_busy = 1.0, group_us = 0.1;
  double overlap = 3.0, combine_us = 1.4, split_ns = 90.0;
  static std::span<const Parameter<Constants>> fields();
};

std::span<const Parameter<Constants>> Constants::fields() {
  using P = Constants;
  using enum Transfer;
  static constexpr auto kFields = joined(
      std::array<Parameter<P>, 13>{{
          {"launch_us", &P::launch_us, 0.0, 30.0, kLaunch, "launch of the cache write and the attention kernel"},
          {"launch_head_dim_us", &P::launch_head_dim_us, 0.0, 5.0, kCycles,
           "additional launch time per 128 of head dimension"},
          {"tile_us", &P::tile_us, 0.0, 12.0, kCycles, "start and end of a tile at head dimension 64"},
          {"tile_growth", &P::tile_growth, 0.0, 2.0, kKept, "relative growth of tile_us per 64 of head dimension"},
          {"tile_row_us", &P::tile_row_us, 0.0, 0.5, kCycles,
           "additional tile time per query row and 128 of head dimension"},
          {"row_ns", &P::row_ns, 0.0, 30.0, kCycles, "time per cached token in one tile at head dimension 64"},
          {"row_growth", &P::row_growth, 0.0, 5.0, kKept, "relative growth of row_ns per 64 of head dimension"},
          {"row_group", &P::row_group, 0.0, 5.0, kKept, "relative growth of row_ns per 8 query rows beyond 8"},
          {"row_busy", &P::row_busy, 0.0, 1.0, kKept, "share of the rows of further waves that is not hidden"},
          {"group_us", &P::group_us, 0.0, 1.0, kCycles, "additional start time per query row beyond 8"},
          {"overlap", &P::overlap, 1.0, 8.0, kKept, "exponent; 1: tiles and memory add, large: their maximum"},
          {"combine_us", &P::combine_us, 0.0, 10.0, kCycles, "merging the partial outputs of a split context"},
          {"split_ns", &P::split_ns, 0.0, 300.0, kCycles, "additional merging time per split"},
      }},
      kCacheReadFields<P>);
  return kFields;
}

/// XQA on Hopper splits a context of length L at most sqrt(L / 16) times. A split then has 16 keys per split, so the
/// fitted time per split (`split_ns`) is effectively a time per key: with it, keys take as long as their bytes do. On
/// other GPUs there are many times as many splits (TensorRT-LLM before 1.1), and merging one takes almost no time on an
/// A100.
void follow_splits(Constants& p, const GpuSpec& from, const GpuSpec& to) {
  constexpr double kKeysPerCut = 16.0;
  if (from.architecture != Architecture::kHopper || to.architecture == Architecture::kHopper) return;
  const double row_ns = p.row_ns + p.split_ns / kKeysPerCut;
  if (row_ns <= 0.0) return;
  p.row_growth *= p.row_ns / row_ns;
  p.row_ns = row_ns;
  p.split_ns = 0.0;
}

/// Differences between the two builds of the kernel.
struct Build {
  double idle;   ///< share of a tile's time that a split outside the window takes to start and exit
  bool limited;  ///< splits a context at most sqrt(context / 16) times
  bool pairs;    ///< two blocks run on an SM while their queries fit
  bool cuts = true;
};

DecodeTime time_of(const DecodeCall& c, const Constants& p, const Chip& chip, const Build& build) {
  const double padded = c.dim <= 64 ? 64 : c.dim <= 128 ? 128 : ceil_div(c.dim, 256) * 256;
  const double width = padded / 128, steps = 2 * width - 1;
  const double query_rows = c.rows <= 8 ? 8 : ceil_div(c.rows, 16) * 16;
  const double limit = build.limited ? std::sqrt(c.longest / 16) : c.longest;
  const double splits =
      !build.cuts ? 1.0 : std::max(1.0, std::floor(std::min({c.longest / 128, limit, 8 * chip.sms / c.units})));
  const double active = std::min(1.0, ceil_div(c.visible, c.context / splits) / splits);
  const double resident = build.pairs && query_rows * padded < 4096 ? 2 : 1;
  const double waves = ceil_div(c.units * splits, resident * chip.sms);
  const double more_rows = std::max(0.0, query_rows - 8);
  const Seconds tile = (p.tile_us * (1 + p.tile_growth * steps) + p.tile_row_us * c.rows * width) * kMicrosecond;
  const double per_row = p.row_ns * (1 + p.row_growth * steps) * (1 + p.row_group * more_rows / 8);
  const double deep = 1 + p.row_busy * (std::max(1.0, waves * active) - 1);
  const double rows =
      std::max(deep * std::min(c.visible, c.context / splits), std::min(c.longest_visible, c.longest / splits));
  const double start = p.group_us * more_rows * (1 + width) / 2;
  return {.launch = launch_at(p.launch_us, p.launch_head_dim_us, c.dim) + start * kMicrosecond,
          .path = (waves - 1) * tile * (active + build.idle * (1 - active)) + rows * per_row * 1e-3 * kMicrosecond,
          .combine = (splits > 1 ? p.combine_us + splits * p.split_ns * 1e-3 : 0.0) * kMicrosecond,
          .overlap = p.overlap,
          .filled = c.units * splits >= chip.sms};
}

/// 16-bit GEMMs by mma.sync. The number of splits depends on the whole context even with a window; splits outside the
/// window start and exit. Versions since 1.1, with which Hopper was measured, split at most sqrt(context / 16) times. A
/// single block on an SM is bound by the latency of its loop; further waves are partly hidden.
class Xqa final : public DecodeKernelOf<Constants> {
 public:
  Xqa()
      : DecodeKernelOf({.name = "xqa_decode",
                        .help = "XQA of TensorRT-LLM, decode",
                        .form = "equations-attention.md#decode",
                        .unexplained = kDecodeUnexplained,
                        .lenders = {&trtllm_gen_decode()}}) {}
  Constants prior(const GpuSpec&, Dtype) const override {
    Constants p;
    p.launch_us = 9.2, p.launch_head_dim_us = 1.2, p.tile_us = 4.0, p.tile_growth = 0.1, p.tile_row_us = 0.08;
    p.row_growth = 2.9, p.split_ns = 100.0;
    return p;
  }

 private:
  DecodeTime time_with(const DecodeCall& c, const Constants& p, const Chip& chip) const override {
    return time_of(c, p, chip, {.idle = 0.6, .limited = chip.architecture == Architecture::kHopper, .pairs = false});
  }
  void follow(Constants& p, const CarryOverCase& to) const override { follow_splits(p, to.from, to.to); }
};

/// fp8 caches without wgmma: one block reads its whole context, as the times of an L40S show (1 x 16384 tokens of 3
/// heads take 533 us there).
class XqaUncut final : public DecodeKernelOf<Constants> {
 public:
  XqaUncut()
      : DecodeKernelOf({.name = "xqa_uncut_decode",
                        .help = "XQA of TensorRT-LLM over fp8 caches by mma.sync, decode",
                        .form = "equations-attention.md#decode",
                        .unexplained = kDecodeUnexplained,
                        .lenders = {&xqa_decode()}}) {}

 private:
  DecodeTime time_with(const DecodeCall& c, const Constants& p, const Chip& chip) const override {
    return time_of(c, p, chip, {.idle = 0.6, .limited = false, .pairs = false, .cuts = false});
  }
};

struct WgmmaConstants : Constants {
  double sink_us = 2.2;
  static std::span<const Parameter<WgmmaConstants>> fields();
};

std::span<const Parameter<WgmmaConstants>> WgmmaConstants::fields() {
  static const std::vector<Parameter<WgmmaConstants>> all = [] {
    std::vector<Parameter<WgmmaConstants>> fields;
    for (const Parameter<Constants>& f : Constants::fields())
      fields.push_back({f.name, f.member, f.low, f.high, f.transfer, f.meaning, f.fixed});
    fields.push_back({"sink_us", &WgmmaConstants::sink_us, 0.0, 8.0, Transfer::kCycles,
                      "separate kernel at head dimension 64, which is not fused"});
    return fields;
  }();
  return all;
}

/// fp8 caches by wgmma, only on Hopper. The kernel also applies RoPE and writes the new keys and values (TensorRT-LLM,
/// decoderXQAImplJIT/kernelUtils.cpp: supportConfigQGMMA requires SM 90). Two blocks run on an SM while their queries
/// fit.
class XqaWgmma final : public DecodeKernelOf<WgmmaConstants> {
 public:
  XqaWgmma()
      : DecodeKernelOf({.name = "xqa_wgmma_decode",
                        .help = "XQA of TensorRT-LLM over fp8 caches on Hopper, decode",
                        .form = "equations-attention.md#decode",
                        .unexplained = kDecodeUnexplained}) {}
  WgmmaConstants prior(const GpuSpec&, Dtype) const override {
    WgmmaConstants p;
    p.launch_us = 5.9, p.launch_head_dim_us = 0.2, p.tile_us = 1.4, p.tile_growth = 0.5, p.tile_row_us = 0.2;
    p.row_growth = 0.1, p.row_ns = 15, p.row_busy = 0.7, p.row_group = 0.3, p.split_ns = 1.0;
    return p;
  }

 private:
  DecodeTime time_with(const DecodeCall& c, const WgmmaConstants& p, const Chip& chip) const override {
    DecodeTime time = time_of(c, p, chip, {.idle = 0.05, .limited = true, .pairs = true});
    if (c.dim == 64) time.launch += p.sink_us * kMicrosecond;
    return time;
  }
};

}  // namespace

const DecodeKernel& xqa_decode() {
  static const Xqa kernel;
  return kernel;
}
const DecodeKernel& xqa_uncut_decode() {
  static const XqaUncut kernel;
  return kernel;
}
const DecodeKernel& xqa_wgmma_decode() {
  static const XqaWgmma kernel;
  return kernel;
}

}  // namespace roofcast::attention
