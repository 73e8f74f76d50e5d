// FlashAttention-3 (vLLM and SGLang on Hopper), and FlashAttention-4 for heads wider than 256.

#include <algorithm>
#include <array>

#include "hw/kernels/decode/decode_kernel.h"

namespace roofcast::attention {
namespace {

struct Constants : CacheReads {
  double launch_us = 9.0, launch_head_dim_us = 1.0, sequence_ns = 10.0;
  double tile_us = 2.2, tile_growth = 0.3, tile_row_us = 0.012;
  double compute_fraction = 1.0;
  double convert_ns = 3.2, convert_wide_ns = 6.7;
  double window_us = 2.0, combine_us = 1.4;
  static std::span<const Parameter<Constants>> fields();
};

std::span<const Parameter<Constants>> Constants::fields() {
  using P = Constants;
  using enum Transfer;
  static constexpr auto kFields = joined(
      std::array<Parameter<P>, 11>{{
          {"launch_us", &P::launch_us, 0.0, 30.0, kLaunch, "launch of the cache write and the attention kernel"},
          {"launch_head_dim_us", &P::launch_head_dim_us, 0.0, 5.0, kCycles,
           "additional launch time per 128 of head dimension"},
          {"sequence_ns", &P::sequence_ns, 0.0, 50.0, kCycles, "scan of the tile scheduler, per sequence"},
          {"tile_us", &P::tile_us, 0.0, 12.0, kCycles, "start and end of a tile at head dimension 64"},
          {"tile_growth", &P::tile_growth, 0.0, 2.0, kKept, "relative growth of tile_us per 64 of head dimension"},
          {"tile_row_us", &P::tile_row_us, 0.0, 0.5, kCycles,
           "additional tile time per query row and 128 of head dimension"},
          {"compute_fraction", &P::compute_fraction, 0.05, 1.0, kKept,
           "share of the datasheet peak in the padded GEMMs", true},
          {"convert_ns", &P::convert_ns, 0.0, 20.0, kCycles,
           "transposing an fp8 v, per cached token and 128 of head dimension"},
          {"convert_wide_ns", &P::convert_wide_ns, 0.0, 20.0, kCycles,
           "additional transposing time at head dimensions over 128"},
          {"window_us", &P::window_us, 0.0, 8.0, kCycles, "masking of a tile at the border of a window"},
          {"combine_us", &P::combine_us, 0.0, 10.0, kCycles, "merging the partial outputs of a split context"},
      }},
      kCacheReadFields<P>);
  return kFields;
}

/// The splits of a context, and the keys of one of them.
struct ContextSplit {
  double splits, rows;  ///< rows: keys that the longest split reads
};
ContextSplit split_of(double context, double visible, double keys, double share, bool captured, bool has_window) {
  const double all = ceil_div(context, keys);
  const double blocks = all - std::floor((context - visible) / keys);
  const double splits = captured ? std::min({blocks, ceil_div(all, share), 32.0}) : 1.0;
  double rows = has_window ? blocks * keys : visible;
  if (splits > 1 || !has_window) rows = std::min(rows, ceil_div(blocks, splits) * keys);
  return {splits, rows};
}

/// For paged caches. Query rows are packed into tiles of M and paid for in full. With up to 512 sequences (captured in
/// a CUDA graph) a context is split so that each split has at most 1.1 x blocks / SMs blocks, into at most 32 splits.
/// FlashAttention-4 starts all 32 for every sequence: those without keys still load queries and write a tile.
class FlashAttention3 final : public DecodeKernelOf<Constants> {
 public:
  using DecodeKernelOf::DecodeKernelOf;
  Constants prior(const GpuSpec& gpu, Dtype kv) const override {
    const bool fp8 = computes_fp8(gpu, kv);
    Constants p;
    p.launch_us = 9.8, p.launch_head_dim_us = fp8 ? 3.0 : 1.1, p.tile_growth = 0.33;
    p.bandwidth_fraction = fp8 ? 0.8 : 0.94;
    return p;
  }

 private:
  DecodeTime time_with(const DecodeCall& c, const Constants& p, const Chip& chip) const override {
    const double d = c.dim, width = d / 128, sms = chip.sms;
    const double tile_rows = d <= 64 ? 192 : 128;
    const double keys = c.fp8 ? (d > 192 ? 128 : 160) : d <= 128 ? 128 : d <= 192 ? 96 : 64;
    const double share = std::ceil(1.1 * c.units * ceil_div(c.context, keys) / sms);
    const bool captured = c.batch <= 512;
    const ContextSplit mean = split_of(c.context, c.visible, keys, share, captured, c.has_window);
    const ContextSplit longest = split_of(c.longest, c.longest_visible, keys, share, captured, c.has_window);
    const double tiles = c.units * ceil_div(c.rows, tile_rows), waves = ceil_div(tiles * mean.splits, sms);
    const double started = captured && d > 256 ? ceil_div(tiles * 32, sms) : waves;
    Seconds row = Flops(2 * tile_rows * c.dims) / (chip.per_sm() * p.compute_fraction);
    if (c.fp8) row += (p.convert_ns + (d > 128 ? p.convert_wide_ns : 0.0)) * width * 1e-3 * kMicrosecond;
    const Seconds border = (c.has_window ? p.window_us : 0.0) * kMicrosecond;
    const Seconds tile =
        (p.tile_us * (1 + p.tile_growth * (d - 64) / 64) + p.tile_row_us * c.rows * width) * kMicrosecond + border;
    const double scans = captured ? 2 : 1;
    const Seconds launch = launch_at(p.launch_us, p.launch_head_dim_us, d);
    return {.launch = launch + c.batch * scans * p.sequence_ns * 1e-3 * kMicrosecond,
            .path = std::max(waves * mean.rows, longest.rows) * row + (started - 1) * tile + border,
            .combine = (longest.splits > 1 ? p.combine_us : 0.0) * kMicrosecond,
            .overlap = 3,
            .filled = c.units * mean.splits >= sms};
  }
};

}  // namespace

const DecodeKernel& flash_attention_3_decode() {
  static const FlashAttention3 kernel({.name = "flash_attention_3_decode",
                                       .help = "FlashAttention-3 on Hopper, decode",
                                       .form = "equations-attention.md#decode",
                                       .unexplained = kDecodeUnexplained});
  return kernel;
}

const DecodeKernel& flash_attention_4_decode() {
  static const FlashAttention3 kernel({.name = "flash_attention_4_decode",
                                       .help = "FlashAttention-4 on Hopper, decode, heads wider than 256",
                                       .form = "equations-attention.md#decode",
                                       .unexplained = kDecodeUnexplained,
                                       .lenders = {&flash_attention_3_decode()},
                                       .scored_apart = true});
  return kernel;
}

}  // namespace roofcast::attention
