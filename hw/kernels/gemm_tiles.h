#pragma once
// Output tiles that a library's GEMM kernels come in.

#include <span>

#include "hw/dtype.h"
#include "hw/gpu_spec.h"

namespace roofcast {

enum class KernelFamily;

/// One thread block computes rows x columns of the output; `halves` = 2 for a Blackwell pair of thread blocks
/// that share a tile, each doing half of it.
struct GemmTile {
  double rows = 0, columns = 0;
  double halves = 1;
  double area = 0;       ///< of one thread block, in 128 x 128
  double intensity = 0;  ///< rows columns / (rows + columns): products a loaded element takes part in, over 2
};
constexpr GemmTile make_tile(double rows, double columns, double halves = 1) {
  return {rows, columns, halves, rows * columns / (128.0 * 128.0 * halves), rows * columns / (rows + columns)};
}

/// How a kernel library picks among its tiles.
struct GemmTiling {
  std::span<const GemmTile> tiles;
  bool split_k = false;         ///< may cut k among thread blocks
  double swapped_up_to = 1e30;  ///< rows of C up to which operands may be swapped; beyond, tiles have 64 or 128 rows
  bool by_rows = false;         ///< one tile by m alone, whatever is fastest (vLLM's CUTLASS fp8 on Hopper)
};

/// The kernels that compute `block` on this GPU under this engine. Sources: docs/equations-gemm.md#tiles.
/// `rows` of C matter where a library does not look for the fastest.
GemmTiling gemm_tiling(Dtype block, const GpuSpec& gpu, KernelFamily family, double rows);
/// The tile for m rows where the tiling is by rows.
GemmTile tile_by_rows(double m);

}  // namespace roofcast
