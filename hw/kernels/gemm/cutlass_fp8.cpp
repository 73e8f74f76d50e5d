// vLLM's CUTLASS kernels for fp8 with a scale per token (csrc/quantization/w8a8/cutlass). They never split k.

#include "hw/kernels/gemm/gemm_kernel.h"

namespace roofcast {
namespace {

/// Thread blocks drift apart faster if two groups of warps alternate in the matrix units (`ping-pong`) than if they
/// share a tile (`cooperative`). A tile of half the size feeds the matrix units 10 % more slowly.
constexpr double kPingPongDrift = 0.045, kCooperativeDrift = 0.005, kPingPongRate = 0.9;

/// vLLM's CUTLASS kernels for fp8 with a scale per token have one fixed tile per shape. For few rows they swap the
/// operands (vllm-project/vllm, csrc/quantization/w8a8/cutlass/c3x/scaled_mm_sm90_fp8_dispatch.cuh and
/// scaled_mm_sm100_fp8_dispatch.cuh). On Blackwell all but one tile are pairs of thread blocks.
const GemmTile& hopper_fp8_tile(double m, double n, double k) {
  static constexpr GemmTile kTiny{16, 64, {.rate = kPingPongRate}};
  static constexpr GemmTile kTinyNarrow{16, 64, {.cluster_rows = 2, .rate = kPingPongRate}};
  static constexpr GemmTile kFew{64, 64, {.rate = kPingPongRate}};
  static constexpr GemmTile kFewNarrow{16, 64, {.cluster_rows = 4, .rate = kPingPongRate}};
  static constexpr GemmTile kSome{64, 128, {.cluster_rows = 2, .rate = kPingPongRate}};
  static constexpr GemmTile kMany{128, 128, {.cluster_rows = 2, .rate = kPingPongRate, .drift = kPingPongDrift}};
  static constexpr GemmTile kLargest{256, 128, {.cluster_rows = 2, .drift = kCooperativeDrift}};
  const bool narrow = n <= 1280;
  if (m <= 16) return narrow ? kTinyNarrow : kTiny;
  if (m <= 64) return narrow ? kFewNarrow : kFew;
  if (m <= 128) return kSome;
  return m >= 8192 && k >= 6144 ? kLargest : kMany;
}
const GemmTile& blackwell_fp8_tile(double m, double k) {
  static constexpr GemmTile kTiny{32, 128, {.halves = 2, .cluster_columns = 4}};
  static constexpr GemmTile kFew{64, 128, {.halves = 2, .cluster_columns = 4}};
  static constexpr GemmTile kFewShort{64, 64, {}};
  static constexpr GemmTile kSome{128, 128, {.halves = 2}};
  static constexpr GemmTile kMany{256, 128, {.halves = 2, .cluster_columns = 2, .drift = kCooperativeDrift}};
  if (m <= 16) return kTiny;
  if (m <= 64) return m == 64 && k < 4096 ? kFewShort : kFew;
  return m <= 256 ? kSome : kMany;
}

struct Constants : GemmParameters {
  static std::span<const Parameter<Constants>> fields() {
    static constexpr auto kFields =
        joined(kTileLoopFields<Constants>, kOddRowsField<Constants>, kOneRowField<Constants>);
    return kFields;
  }
};

class CutlassFp8 final : public MatmulKernelOf<Constants> {
 public:
  using MatmulKernelOf::MatmulKernelOf;
  GemmTiling tiling(const GpuSpec& gpu, double m, double n, double k) const override {
    if (gpu.architecture == Architecture::kHopper) return {.tiles = {&hopper_fp8_tile(m, n, k), 1}, .linear = true};
    if (gpu.architecture == Architecture::kBlackwell) return {.tiles = {&blackwell_fp8_tile(m, k), 1}, .linear = true};
    return all_tiles(gpu, false, m);
  }
};

/// Compute capability 8.9: CUTLASS 2 by mma.sync, the 16-bit pipeline at another rate.
struct ByMmaSync : GemmParameters {
  static std::span<const Parameter<ByMmaSync>> fields() {
    static constexpr auto kFields =
        joined(kTileLoopFields<ByMmaSync>, kPairedTileFields<ByMmaSync>, kOneRowField<ByMmaSync>);
    return kFields;
  }
};

class CutlassMmaSyncFp8 final : public MatmulKernelOf<ByMmaSync> {
 public:
  using MatmulKernelOf::MatmulKernelOf;
  GemmTiling tiling(const GpuSpec& gpu, double m, double, double) const override { return all_tiles(gpu, false, m); }
};

}  // namespace

const MatmulKernel& cutlass_fp8() {
  static const CutlassFp8 kernel(
      {.name = "cutlass_fp8", .help = "vLLM's CUTLASS, fp8", .form = kGemmForm, .unexplained = kGemmUnexplained});
  return kernel;
}
const MatmulKernel& cutlass_mma_sync_fp8() {
  static const CutlassMmaSyncFp8 kernel({.name = "cutlass_mma_sync_fp8",
                                         .help = "vLLM's CUTLASS, fp8, by mma.sync",
                                         .form = kGemmForm,
                                         .unexplained = kGemmUnexplained,
                                         .lenders = {&cutlass_fp8()}});
  return kernel;
}

}  // namespace roofcast
