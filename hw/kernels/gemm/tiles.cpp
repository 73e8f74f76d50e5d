#include "hw/kernels/gemm/tiles.h"

#include <array>
#include <cstddef>

namespace roofcast {
namespace {

/// cuBLASLt on Hopper: 64 or 128 on one side (one or two warpgroups of wgmma, M = 64), the step sizes of wgmma on the
/// other; 256 x up to 128. Either operand may be on the wide side.
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
constexpr TileBounds kHopperBounds = bounds_of(kHopperTiles.span());

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
constexpr TileBounds kBlackwellBounds = bounds_of(kBlackwellTiles.span());

/// Ampere and Ada: powers of two (mma.sync 16x8x16 in CUTLASS 2 shapes).
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
constexpr TileBounds kAmpereBounds = bounds_of(kAmpereTiles.span());

/// Tiles that rocBLAS and hipBLASLt of 2024 chose without tuning on MI300X: up to a few hundred rows, the time of a
/// GEMM grows with every 16 rows as if each group read the weights alone; prompts run in large tiles.
constexpr double kThinRows = 512;
constexpr std::array<GemmTile, 1> kUntunedThin{GemmTile(16, 128)}, kUntunedLarge{GemmTile(128, 128)};

}  // namespace

bool has_mma_sync_only(const GpuSpec& gpu) { return traits_of(gpu.architecture).matrix_units == MatrixUnits::kMmaSync; }

GemmTiling all_tiles(const GpuSpec& gpu, bool split_k, double m) {
  switch (gpu.architecture) {
    case Architecture::kHopper:
      return {.tiles = kHopperTiles.span(), .bounds = &kHopperBounds, .split_k = split_k};
    case Architecture::kBlackwell:
      return {.tiles = kBlackwellTiles.span(), .bounds = &kBlackwellBounds, .split_k = split_k};
    case Architecture::kCdna3Untuned:
      return {.tiles = m <= kThinRows ? kUntunedThin : kUntunedLarge, .split_k = m <= kThinRows};
    default:
      return {.tiles = kAmpereTiles.span(), .bounds = &kAmpereBounds, .split_k = split_k};
  }
}

}  // namespace roofcast
