#include "hw/kernels/gemm_tiles.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "hw/efficiency.h"

namespace roofcast {
namespace {

/// A list of at most N tiles made at compile time.
template <std::size_t N>
struct TileList {
  std::array<GemmTile, N> tiles{};
  std::size_t count = 0;
  constexpr void add(double rows, double columns, double halves = 1) {
    tiles[count++] = GemmTile(rows, columns, {.halves = halves});
  }
  constexpr bool has(double rows, double columns) const {
    for (std::size_t i = 0; i < count; ++i) {
      if (tiles[i].rows == rows && tiles[i].columns == columns) return true;
    }
    return false;
  }
  constexpr void add_once(double rows, double columns) {
    if (!has(rows, columns)) add(rows, columns);
  }
  constexpr std::span<const GemmTile> span() const { return {tiles.data(), count}; }
};

/// cuBLASLt on Hopper: 64 or 128 on one side (one or two warpgroups of wgmma, M = 64), the other side in the
/// steps that wgmma takes; 256 x up to 128. Either operand may lie on the wide side.
constexpr auto hopper_tiles() {
  TileList<64> list;
  for (const double wide : {64.0, 128.0}) {
    for (const double narrow : {8.0, 16.0, 32.0, 64.0, 96.0, 128.0, 160.0, 192.0, 224.0, 256.0}) {
      list.add_once(wide, narrow);
      list.add_once(narrow, wide);
    }
  }
  for (const double narrow : {64.0, 96.0, 128.0}) {
    list.add_once(256, narrow);
    list.add_once(narrow, 256);
  }
  return list;
}
constexpr auto kHopperTiles = hopper_tiles();

/// Blackwell adds pairs of thread blocks (tcgen05 with cta_group 2) that share a tile of 256 rows.
constexpr auto blackwell_tiles() {
  TileList<80> list;
  for (const GemmTile& tile : kHopperTiles.span()) {
    if (tile.rows <= 128 || tile.columns <= 128) list.add(tile.rows, tile.columns);
  }
  for (const double columns : {32.0, 64.0, 96.0, 128.0, 160.0, 192.0, 224.0, 256.0}) list.add(256, columns, 2);
  return list;
}
constexpr auto kBlackwellTiles = blackwell_tiles();

/// Ampere and Ada: powers of two (mma.sync 16x8x16 under CUTLASS 2 shapes).
constexpr auto ampere_tiles() {
  TileList<32> list;
  constexpr double kShapes[][2] = {{64, 64}, {64, 128}, {128, 128}, {64, 256}, {128, 256},
                                   {16, 64}, {32, 64},  {16, 128},  {32, 128}};
  for (const auto& shape : kShapes) {
    list.add_once(shape[0], shape[1]);
    list.add_once(shape[1], shape[0]);
  }
  return list;
}
constexpr auto kAmpereTiles = ampere_tiles();

/// DeepGEMM, which compiles the tile for the shape: 64 x 16..256 in steps of 16, 128 x up to 160 both ways.
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

/// What rocBLAS and hipBLASLt of 2024 chose without tuning on MI300X: the time of a product grows with every 16 rows
/// as if each had the weights to itself, up to a few hundred; prompts run in large tiles.
constexpr double kThinRows = 512;
constexpr std::array<GemmTile, 1> kUntunedThin{GemmTile(16, 128)}, kUntunedLarge{GemmTile(128, 128)};

/// Thread blocks part faster where two groups of warps take turns in the matrix units (`ping-pong`) than where they
/// share a tile (`cooperative`); and a tile of half the size feeds those units a tenth slower.
constexpr double kPingPongDrift = 0.045, kCooperativeDrift = 0.005, kPingPongRate = 0.9;

/// vLLM's CUTLASS kernels for fp8 with a scale a token have one tile for a shape, whatever is fastest; few rows swap
/// the operands (vllm-project/vllm, csrc/quantization/w8a8/cutlass/c3x/scaled_mm_sm90_fp8_dispatch.cuh and
/// scaled_mm_sm100_fp8_dispatch.cuh). On Blackwell all but one are pairs of thread blocks.
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

/// TensorRT-LLM's DeepGEMM for Hopper takes, of tiles 64 or 128 high and 16 to 128 wide, the one with the fewest turns,
/// then the one that fills the last turn best, then the narrowest; fewer than 32 rows swap the operands
/// (NVIDIA/TensorRT-LLM, cpp/tensorrt_llm/kernels/cutlass_kernels/fp8_blockscale_gemm/fp8_blockscale_gemm_kernel.cuh,
/// deep_gemm/compiler.cuh: get_best_gemm_config).
constexpr double kSwappedBelow = 32;
constexpr std::size_t kWidths = 15;
constexpr double width_of(std::size_t i) { return 16.0 + 8.0 * static_cast<double>(i); }
constexpr auto turn_counting_tiles() {
  std::array<std::array<GemmTile, kWidths>, 4> tiles{};
  for (std::size_t i = 0; i < kWidths; ++i) {
    tiles[0][i] = GemmTile(64, width_of(i));
    tiles[1][i] = GemmTile(128, width_of(i));
    tiles[2][i] = GemmTile(width_of(i), 64);
    tiles[3][i] = GemmTile(width_of(i), 128);
  }
  return tiles;
}
constexpr auto kTurnCountingTiles = turn_counting_tiles();

const GemmTile& turn_counting_tile(double m, double n, double sms) {
  const bool swapped = m < kSwappedBelow;
  const double high = swapped ? n : m, wide = swapped ? m : n;
  const double height = high <= 64.0 ? 64.0 : 128.0;
  const auto down = static_cast<std::int64_t>(std::ceil(high / height));
  std::size_t best = 0;
  std::int64_t best_turns = 0, best_last = 0;
  for (std::size_t i = 0; i < kWidths; ++i) {
    const std::int64_t blocks = down * static_cast<std::int64_t>(std::ceil(wide / width_of(i)));
    const std::int64_t turns = (blocks - 1) / static_cast<std::int64_t>(sms),
                       last = blocks - turns * static_cast<std::int64_t>(sms);
    if (i > 0 && (turns > best_turns || (turns == best_turns && last <= best_last))) continue;
    best = i;
    best_turns = turns;
    best_last = last;
  }
  return kTurnCountingTiles[(swapped ? 2u : 0u) + (height > 64.0 ? 1u : 0u)][best];
}

}  // namespace

bool has_mma_sync_only(const GpuSpec& gpu) { return traits_of(gpu.architecture).matrix_units == MatrixUnits::kMmaSync; }

bool runs_cublaslt(Dtype block, KernelFamily family) {
  return block == Dtype::kBf16 || (block == Dtype::kFp8 && family == KernelFamily::kTrtllm);
}

GemmTiling gemm_tiling(Dtype block, const GpuSpec& gpu, KernelFamily family, double m, double n, double k) {
  const bool vllm = family != KernelFamily::kTrtllm;
  const bool hopper = gpu.architecture == Architecture::kHopper;
  if (gpu.architecture == Architecture::kCdna3Untuned)
    return {.tiles = m <= kThinRows ? kUntunedThin : kUntunedLarge, .split_k = m <= kThinRows};
  const bool cublas = runs_cublaslt(block, family);
  if (block == Dtype::kFp8Block && hopper && !vllm)
    return {.tiles = {&turn_counting_tile(m, n, gpu.sm_count), 1}, .empty_rows_stall = true};
  // DeepGEMM for Hopper swaps the operands of few rows only.
  if (block == Dtype::kFp8Block && hopper)
    return {.tiles = kDeepGemmTiles.span(), .swapped_up_to = 64, .empty_rows_stall = true};
  if (block == Dtype::kFp8Block && gpu.architecture == Architecture::kBlackwell)
    return {.tiles = kDeepGemmTiles.span()};
  if (block == Dtype::kFp8 && vllm && hopper) return {.tiles = {&hopper_fp8_tile(m, n, k), 1}, .linear = true};
  if (block == Dtype::kFp8 && vllm && gpu.architecture == Architecture::kBlackwell)
    return {.tiles = {&blackwell_fp8_tile(m, k), 1}, .linear = true};
  if (hopper) return {.tiles = kHopperTiles.span(), .split_k = cublas};
  if (gpu.architecture == Architecture::kBlackwell) return {.tiles = kBlackwellTiles.span(), .split_k = cublas};
  return {.tiles = kAmpereTiles.span(), .split_k = cublas};
}

}  // namespace roofcast
