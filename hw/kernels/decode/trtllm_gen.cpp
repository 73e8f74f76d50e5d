// trtllm-gen, the generated kernels for data-center Blackwell, and the kernels that engines run in their place.

#include <algorithm>

#include "hw/kernels/decode/tiles.h"

namespace roofcast::attention {
namespace {

struct Constants : TileCosts {
  static std::span<const Parameter<Constants>> fields();
};

std::span<const Parameter<Constants>> Constants::fields() {
  static constexpr auto kFields = joined(kTileCostFields<Constants>, kCacheReadFields<Constants>);
  return kFields;
}

/// Rows are padded to 8, and a context is split into at most 16 parts of `part` tokens or more.
class TrtllmGen : public DecodeKernelOf<Constants> {
 public:
  TrtllmGen(const KernelFacts& facts, double fp8_part, double prior_launch_us)
      : DecodeKernelOf(facts), fp8_part_(fp8_part), prior_launch_us_(prior_launch_us) {}
  Constants prior(const GpuSpec&, Dtype) const override {
    Constants p;
    p.launch_us = prior_launch_us_, p.launch_head_dim_us = 0.2, p.head_ns = 0.3;
    p.tile_us = 1.2, p.tile_growth = 0.2, p.compute_fraction = 0.2, p.tile_row_us = 0.005;
    p.bandwidth_fraction = 0.9;
    return p;
  }

 protected:
  DecodeTime time_with(const DecodeCall& c, const Constants& p, const Chip& chip) const override {
    constexpr double kPart = 512, kMostParts = 16;
    const double border = c.has_window ? 64 : 0;
    TileGrid grid{c.units, c.rows, std::min(8 * ceil_div(c.rows, 8), 64.0), 1, border};
    const double parts = ceil_div(c.longest_visible + border, c.fp8 ? fp8_part_ : kPart);
    grid.splits = std::clamp(std::min(parts, std::floor(chip.sms / grid.tiles())), 1.0, kMostParts);
    return time_of(grid, c, p, chip, 1.0);
  }

 private:
  double fp8_part_, prior_launch_us_;
};

/// The kernel of vLLM for head dimensions that trtllm-gen lacks: it reaches about 20 % of the bandwidth (head dimension
/// 192 on a B200).
class Triton final : public TrtllmGen {
  using TrtllmGen::TrtllmGen;
  DecodeTime time_with(const DecodeCall& c, const Constants& p, const Chip& chip) const override {
    DecodeTime time = TrtllmGen::time_with(c, p, chip);
    time.most_bandwidth = kTritonBandwidth;
    return time;
  }
};

constexpr double kLaunch = 10.9, kLaunchByVllm = 9.0;

}  // namespace

const DecodeKernel& trtllm_gen_decode() {
  static const TrtllmGen kernel({.name = "trtllm_gen_decode",
                                 .help = "trtllm-gen as TensorRT-LLM calls it, decode",
                                 .form = "equations-attention.md#decode",
                                 .unexplained = kDecodeUnexplained},
                                512, kLaunch);
  return kernel;
}
const DecodeKernel& trtllm_gen_vllm_decode() {
  static const TrtllmGen kernel({.name = "trtllm_gen_vllm_decode",
                                 .help = "trtllm-gen as FlashInfer calls it for vLLM, decode",
                                 .form = "equations-attention.md#decode",
                                 .unexplained = kDecodeUnexplained,
                                 .lenders = {&trtllm_gen_decode()}},
                                256, kLaunchByVllm);
  return kernel;
}
const DecodeKernel& triton_decode() {
  static const Triton kernel({.name = "triton_decode",
                              .help = "vLLM's Triton kernel on Blackwell, decode",
                              .form = "equations-attention.md#decode",
                              .unexplained = kDecodeUnexplained,
                              .lenders = {&trtllm_gen_vllm_decode()},
                              .scored_apart = true},
                             256, kLaunchByVllm);
  return kernel;
}
/// TensorRT-LLM runs it on Blackwell for heads wider than 256, and for heads of 256 with a window.
const DecodeKernel& flashinfer_decode() {
  static const TrtllmGen kernel({.name = "flashinfer_decode",
                                 .help = "FlashInfer under TensorRT-LLM on Blackwell, decode",
                                 .form = "equations-attention.md#decode",
                                 .unexplained = kDecodeUnexplained,
                                 .lenders = {&trtllm_gen_decode()},
                                 .scored_apart = true},
                                512, kLaunch);
  return kernel;
}

}  // namespace roofcast::attention
