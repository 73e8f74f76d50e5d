// TensorRT-LLM's masked multi-head attention on CUDA cores.

#include <algorithm>
#include <array>
#include <cmath>

#include "hw/kernels/decode/decode_kernel.h"

namespace roofcast::attention {
namespace {

struct Constants : CacheReads {
  double launch_us = 7.5, launch_head_dim_us = 0.0, context_us = 2.0, busy_us = 2.0, wave_us = 6.0;
  double key_ns = 5.8, lone = 0.4, overlap = 3.0, combine_us = 6.0;
  static std::span<const Parameter<Constants>> fields();
};

std::span<const Parameter<Constants>> Constants::fields() {
  using P = Constants;
  using enum Transfer;
  static constexpr auto kFields =
      joined(std::array<Parameter<P>, 9>{{
                 {"launch_us", &P::launch_us, 0.0, 30.0, kLaunch, "launch of the cache write and the attention kernel"},
                 {"launch_head_dim_us", &P::launch_head_dim_us, 0.0, 5.0, kCycles,
                  "additional launch time per 128 of head dimension"},
                 {"context_us", &P::context_us, 0.0, 5.0, kCycles,
                  "additional time once every group of threads has a key to read"},
                 {"busy_us", &P::busy_us, 0.0, 5.0, kCycles,
                  "additional time per further wave once every group of threads has a key to read"},
                 {"wave_us", &P::wave_us, 0.0, 15.0, kCycles, "time per further wave of blocks"},
                 {"key_ns", &P::key_ns, 0.0, 100.0, kCycles, "time per cached token of one head at head dimension 64"},
                 {"lone", &P::lone, 0.0, 4.0, kKept, "key_ns of a block alone on its SM, as a multiple"},
                 {"overlap", &P::overlap, 1.0, 8.0, kKept, "exponent; 1: keys and memory add, large: their maximum"},
                 {"combine_us", &P::combine_us, 0.0, 20.0, kCycles, "merging a split context"},
             }},
             kCacheReadFields<P>);
  return kFields;
}

/// The launch: blocks of `threads` threads, one per query head and part of its context.
struct Grid {
  double threads, splits;
  double resident() const { return 1024 / threads; }  ///< blocks per SM, limited by registers
};

/// Blocks have 256 threads, or 512 or 1024 if there are not enough blocks for four per SM. With the largest blocks,
/// contexts are split while one wave holds all parts; each part has at least one iteration of the loop, eight keys per
/// group of d / 8 threads. Source: launch rule of TensorRT-LLM, kernels/decoderMaskedMultiheadAttention (Apache-2.0).
Grid grid_of(const DecodeCall& c, double sms) {
  const double factor = ceil_div(4 * sms, c.heads);
  const double threads = c.heads >= 4 * sms || factor < 2 ? 256 : factor < 4 ? 512 : 1024;
  if (threads < 1024) return {threads, 1};
  const double round = 8 * threads / (c.dim / 8);
  return {threads, std::max(1.0, std::min(ceil_div(c.longest + 1, round), ceil_div(sms, c.heads)))};
}

/// Blocks run in waves. A wave takes roughly the longer of its threads' latency and the time of its SMs for their keys.
/// With fewer keys than groups of d / 8 threads, most of the latency is not paid.
class Mmha final : public DecodeKernelOf<Constants> {
 public:
  using DecodeKernelOf::DecodeKernelOf;
  Constants prior(const GpuSpec& gpu, Dtype kv) const override {
    const bool fp8 = computes_fp8(gpu, kv);
    Constants p;
    if (traits_of(gpu.architecture).matrix_units == MatrixUnits::kTcgen05) {
      p.launch_us = 10, p.combine_us = 10, p.bandwidth_fraction = 0.9;
      return p;
    }
    p.launch_us = fp8 ? 9.0 : 7.1, p.launch_head_dim_us = fp8 ? 0.2 : 1.2, p.combine_us = 5.5;
    return p;
  }

 private:
  DecodeTime time_with(const DecodeCall& c, const Constants& p, const Chip& chip) const override {
    const double sms = chip.sms;
    const Grid grid = grid_of(c, sms);
    const double blocks = c.heads * grid.splits, slots = sms * grid.resident(), waves = ceil_div(blocks, slots);
    const double cut = c.visible / grid.splits, longest = c.longest_visible / grid.splits;
    const double busy = std::min(1.0, cut * c.dim / (8 * grid.threads));
    const Seconds row = p.key_ns * std::pow(c.dim / 64, 0.7) * 1e-3 * kMicrosecond;
    const double rows = std::max(std::max(waves * p.lone, blocks / sms) * cut, p.lone * longest);
    double launch = p.launch_us + p.context_us * busy;
    launch += p.launch_head_dim_us * c.dim / 128;
    const Seconds further = (waves - 1) * (p.wave_us + p.busy_us * busy) * kMicrosecond;
    const Bytes keys(std::min(blocks, slots) * c.kv_heads * c.batch / c.heads * cut * c.dim * (c.fp8 ? 1 : 2));
    return {.launch = launch * kMicrosecond,
            .path = overlapped(further, rows * row, 2),
            .combine = (grid.splits > 1 ? p.combine_us : 0.0) * kMicrosecond,
            .overlap = p.overlap,
            .filled = blocks >= sms,
            .fp8_operations = kMmhaConversion,
            .resident = keys};
  }
};

}  // namespace

const DecodeKernel& mmha_decode() {
  static const Mmha kernel({.name = "mmha_decode",
                            .help = "TensorRT-LLM's masked attention on CUDA cores, decode",
                            .form = "equations-attention.md#decode",
                            .unexplained = kDecodeUnexplained,
                            .lenders = {&mmha_blackwell_decode()}});
  return kernel;
}
/// The build beside trtllm-gen is fitted separately: its times say nothing about the mma.sync build.
const DecodeKernel& mmha_blackwell_decode() {
  static const Mmha kernel({.name = "mmha_blackwell_decode",
                            .help = "TensorRT-LLM's masked attention on CUDA cores, decode, data-center Blackwell",
                            .form = "equations-attention.md#decode",
                            .unexplained = kDecodeUnexplained});
  return kernel;
}

}  // namespace roofcast::attention
