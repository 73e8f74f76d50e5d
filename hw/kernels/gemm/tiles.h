#pragma once
// Output tiles that a library's GEMM kernels come in.

#include <array>
#include <cstddef>
#include <span>

#include "hw/dtype.h"
#include "hw/gpu_spec.h"

namespace roofcast {

/// What a kernel does with its tile, beside its size.
struct TileKind {
  double halves = 1;           ///< 2 for a Blackwell pair of thread blocks that share a tile, each doing half of it
  double cluster_rows = 1;     ///< tiles of a thread block cluster down C: the grid is filled up to whole clusters
  double cluster_columns = 1;  ///< the same across
  double rate = 1;             ///< rate of the matrix units, over the library's best kernel
  double drift = 0.005;        ///< share of a wave by which thread blocks drift apart in it; tiles walked in lines
};

/// One thread block computes rows x columns of the output, or one of `halves` of it.
struct GemmTile : TileKind {
  double rows = 0, columns = 0;
  double area = 0;       ///< of one thread block, in 128 x 128
  double intensity = 0;  ///< rows columns / (rows + columns): products a loaded element takes part in, over 2
  constexpr GemmTile() = default;
  constexpr GemmTile(double r, double c, const TileKind& kind = {})
      : TileKind(kind), rows(r), columns(c), area(r * c / (128.0 * 128.0 * kind.halves)), intensity(r * c / (r + c)) {}
};

/// What bounds the times of a list of tiles from below. One array per number, so that loops become vector code, and in
/// single precision, of which a vector holds twice as many.
struct TileBounds {
  static constexpr std::size_t kMost = 80;
  using Column = std::array<float, kMost>;
  Column per_row{}, per_column{};  ///< their inverses
  Column halves{}, area{};         ///< GemmTile's
  Column work{}, per_intensity{};  ///< area over rate; inverse
};

/// How a kernel library picks among its tiles.
struct GemmTiling {
  std::span<const GemmTile> tiles;     ///< the fastest of them runs
  const TileBounds* bounds = nullptr;  ///< of the same tiles; null: all of them are tried
  bool split_k = false;                ///< may cut k among thread blocks
  double swapped_up_to = 1e30;    ///< rows of C up to which operands may be swapped; beyond, tiles have 64 or 128 rows
  bool empty_rows_stall = false;  ///< tiles wait for rows that lie beyond the matrix
  bool linear = false;            ///< tiles are walked row by row or column by column of C, not in blocks that L2 holds
};

/// Matrix units that take their operands from registers (mma.sync), two thread blocks of smaller tiles to an SM:
/// Ampere, Ada and Blackwell's graphics chips (compute capability 12.0), which have neither wgmma nor tcgen05.
bool has_mma_sync_only(const GpuSpec& gpu);

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

constexpr TileBounds bounds_of(std::span<const GemmTile> tiles) {
  TileBounds out;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const GemmTile& tile = tiles[i];
    const auto set = [i](TileBounds::Column& column, double value) { column[i] = static_cast<float>(value); };
    set(out.per_row, 1.0 / tile.rows), set(out.per_column, 1.0 / tile.columns);
    set(out.halves, tile.halves), set(out.area, tile.area);
    set(out.work, tile.area / tile.rate), set(out.per_intensity, 1.0 / tile.intensity);
  }
  return out;
}

/// The tiles of a library that has all of an architecture's, and looks for the fastest. Sources:
/// docs/equations-gemm.md#tiles.
GemmTiling all_tiles(const GpuSpec& gpu, bool split_k, double m);

}  // namespace roofcast
