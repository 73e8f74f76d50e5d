// TensorRT-LLM's own DeepGEMM, block fp8.

#include <array>
#include <cmath>
#include <cstdint>

#include "hw/kernels/gemm/gemm_kernel.h"

namespace roofcast {
namespace {

/// TensorRT-LLM's DeepGEMM for Hopper has tiles 64 or 128 high and 16 to 128 wide. It chooses the tile with the fewest
/// waves, then with the fullest last wave, then the narrowest. Fewer than 32 rows swap the operands
/// (NVIDIA/TensorRT-LLM, cpp/tensorrt_llm/kernels/cutlass_kernels/fp8_blockscale_gemm/fp8_blockscale_gemm_kernel.cuh,
/// deep_gemm/compiler.cuh: get_best_gemm_config).
constexpr double kSwappedBelow = 32;
constexpr std::size_t kWidths = 15;
constexpr double width_of(std::size_t i) { return 16.0 + 8.0 * static_cast<double>(i); }
constexpr auto fewest_waves_tiles() {
  std::array<std::array<GemmTile, kWidths>, 4> tiles{};
  for (std::size_t i = 0; i < kWidths; ++i) {
    tiles[0][i] = GemmTile(64, width_of(i));
    tiles[1][i] = GemmTile(128, width_of(i));
    tiles[2][i] = GemmTile(width_of(i), 64);
    tiles[3][i] = GemmTile(width_of(i), 128);
  }
  return tiles;
}
constexpr auto kFewestWavesTiles = fewest_waves_tiles();

const GemmTile& fewest_waves_tile(double m, double n, double sms) {
  const bool swapped = m < kSwappedBelow;
  const double high = swapped ? n : m, wide = swapped ? m : n;
  const double height = high <= 64.0 ? 64.0 : 128.0;
  const auto down = static_cast<std::int64_t>(std::ceil(high / height));
  std::size_t best = 0;
  std::int64_t best_waves = 0, best_last = 0;
  for (std::size_t i = 0; i < kWidths; ++i) {
    const std::int64_t blocks = down * static_cast<std::int64_t>(std::ceil(wide / width_of(i)));
    const std::int64_t waves = (blocks - 1) / static_cast<std::int64_t>(sms),
                       last = blocks - waves * static_cast<std::int64_t>(sms);
    if (i > 0 && (waves > best_waves || (waves == best_waves && last <= best_last))) continue;
    best = i;
    best_waves = waves;
    best_last = last;
  }
  return kFewestWavesTiles[(swapped ? 2u : 0u) + (height > 64.0 ? 1u : 0u)][best];
}

struct Constants : GemmParameters {
  static std::span<const Parameter<Constants>> fields() {
    static constexpr auto kFields = joined(kTileLoopFields<Constants>, kOddRowsField<Constants>);
    return kFields;
  }
};

class DeepGemmTrtllm final : public MatmulKernelOf<Constants> {
 public:
  using MatmulKernelOf::MatmulKernelOf;
  GemmTiling tiling(const GpuSpec& gpu, double m, double n, double k) const override {
    if (gpu.architecture != Architecture::kHopper) return deep_gemm().tiling(gpu, m, n, k);
    return {.tiles = {&fewest_waves_tile(m, n, gpu.sm_count), 1}, .empty_rows_stall = true};
  }
};

}  // namespace

const MatmulKernel& deep_gemm_trtllm() {
  static const DeepGemmTrtllm kernel({.name = "deep_gemm_trtllm",
                                      .help = "TensorRT-LLM's DeepGEMM, block fp8",
                                      .form = kGemmForm,
                                      .unexplained = kGemmUnexplained});
  return kernel;
}

}  // namespace roofcast
