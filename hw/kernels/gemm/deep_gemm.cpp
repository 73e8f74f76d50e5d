// DeepGEMM as vLLM and SGLang use it for block fp8 on Hopper and Blackwell. It compiles a kernel per shape and never
// splits k.

#include "hw/kernels/gemm/gemm_kernel.h"

namespace roofcast {
namespace {

/// The tiles that DeepGEMM can compile: 64 x 16..256 in steps of 16, 128 x up to 160, and their transposes.
constexpr auto deep_gemm_tiles() {
  TileList<48> list;
  for (double columns = 16; columns <= 256; columns += 16) list.add_once(64, columns);
  for (double narrow = 16; narrow <= 160; narrow += 16) {
    list.add_once(128, narrow);
    list.add_once(narrow, 128);
  }
  return list;
}
constexpr auto kDeepGemmTiles = deep_gemm_tiles();
constexpr TileBounds kDeepGemmBounds = bounds_of(kDeepGemmTiles.span());

struct Constants : GemmParameters {
  static std::span<const Parameter<Constants>> fields() {
    static constexpr auto kFields = joined(kTileLoopFields<Constants>, kOddRowsField<Constants>);
    return kFields;
  }
};

class DeepGemm final : public MatmulKernelOf<Constants> {
 public:
  using MatmulKernelOf::MatmulKernelOf;
  /// On Hopper it swaps the operands only for few rows.
  GemmTiling tiling(const GpuSpec& gpu, double, double, double) const override {
    if (gpu.architecture != Architecture::kHopper) return {.tiles = kDeepGemmTiles.span(), .bounds = &kDeepGemmBounds};
    return {.tiles = kDeepGemmTiles.span(), .bounds = &kDeepGemmBounds, .swapped_up_to = 64, .empty_rows_stall = true};
  }
};

/// FlashInfer's low-latency trtllm-gen kernel on Blackwell processes the rows in short tiles of equal time: 0.79 us per
/// row for 24576 x 7168 on a B200 (github.com/sgl-project/sglang/pull/13528), a tenth of the peak.
class TrtllmGenGemm final : public MatmulKernelOf<Constants> {
 public:
  using MatmulKernelOf::MatmulKernelOf;
  GemmTiling tiling(const GpuSpec& gpu, double m, double n, double k) const override {
    return deep_gemm().tiling(gpu, m, n, k);
  }
  bool runs(const GpuSpec& gpu, Dtype block) const override {
    return block == Dtype::kFp8Block && gpu.architecture == Architecture::kBlackwell;
  }
  double least_share_of_peak() const override { return 0.1; }
};

}  // namespace

const MatmulKernel& deep_gemm() {
  static const DeepGemm kernel(
      {.name = "deep_gemm", .help = "DeepGEMM, block fp8", .form = kGemmForm, .unexplained = kGemmUnexplained});
  return kernel;
}
const MatmulKernel& trtllm_gen_gemm() {
  static const TrtllmGenGemm kernel({.name = "trtllm_gen_gemm",
                                     .help = "FlashInfer's trtllm-gen for few rows, block fp8 on Blackwell",
                                     .form = kGemmForm,
                                     .unexplained = kGemmUnexplained,
                                     .lenders = {&deep_gemm()}});
  return kernel;
}

}  // namespace roofcast
