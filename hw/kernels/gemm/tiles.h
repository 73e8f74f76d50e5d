#pragma once
// Output tiles of a library's GEMM kernels.

#include <array>
#include <cstddef>
#include <span>

#include "hw/dtype.h"
#include "hw/gpu_spec.h"

namespace roofcast {

/// Properties of a tile other than its size.
struct TileKind {
  double halves = 1;  ///< 2 for a Blackwell pair of thread blocks, each computing half of a shared tile
  double cluster_rows =
      1;  ///< tiles of a thread block cluster along a column of C: the grid is padded to whole clusters
  double cluster_columns = 1;  ///< the same along a row
  double rate = 1;             ///< matrix-unit rate relative to the library's best kernel
  double drift = 0.005;        ///< share of a wave by which thread blocks drift apart; for linear tile order
};

/// One thread block computes rows x columns of the output, or one of `halves` parts of it.
struct GemmTile : TileKind {
  double rows = 0, columns = 0;
  double area = 0;       ///< of one thread block, in 128 x 128
  double intensity = 0;  ///< rows columns / (rows + columns): half of the products per loaded element
  constexpr GemmTile() = default;
  constexpr GemmTile(double r, double c, const TileKind& kind = {})
      : TileKind(kind), rows(r), columns(c), area(r * c / (128.0 * 128.0 * kind.halves)), intensity(r * c / (r + c)) {}
};

/// Lower bounds of the times of a list of tiles. One array per quantity, so that loops are vectorized; in single
/// precision, which doubles the values per vector.
struct TileBounds {
  static constexpr std::size_t kMost = 80;
  using Column = std::array<float, kMost>;
  Column per_row{}, per_column{};  ///< inverses of rows and columns
  Column halves{}, area{};         ///< GemmTile's
  Column work{}, per_intensity{};  ///< area over rate; inverse
};

/// How a kernel library chooses between its tiles.
struct GemmTiling {
  std::span<const GemmTile> tiles;     ///< the fastest of them is used
  const TileBounds* bounds = nullptr;  ///< for the same tiles; null: all tiles are tried
  bool split_k = false;                ///< may split k between thread blocks
  double swapped_up_to = 1e30;         ///< most rows of C with swapped operands; above it, tiles have 64 or 128 rows
  bool empty_rows_stall = false;       ///< tiles wait for rows beyond the matrix
  bool linear = false;                 ///< tile order is row by row or column by column of C, not in blocks that fit L2
};

/// Whether the matrix units only have mma.sync, with operands in registers and two thread blocks of smaller tiles per
/// SM: Ampere, Ada and Blackwell's graphics chips (compute capability 12.0), which have neither wgmma nor tcgen05.
bool has_mma_sync_only(const GpuSpec& gpu);

/// A list of at most N tiles, built at compile time.
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

/// The tiles of a library that has all tiles of an architecture and searches for the fastest. Sources:
/// docs/equations-gemm.md#tiles.
GemmTiling all_tiles(const GpuSpec& gpu, bool split_k, double m);

}  // namespace roofcast
