#pragma once
// Decode kernels that loop over tiles of query rows: FlashAttention-2 and similar kernels, trtllm-gen.

#include "hw/kernels/decode/decode_kernel.h"

namespace roofcast::attention {

/// One launch whose blocks compute `padded` query rows each.
struct TileGrid {
  double units;   ///< (sequence, head) pairs that a tile belongs to
  double rows;    ///< query rows per unit
  double padded;  ///< rows that a tile computes
  double splits;  ///< parts of a context (split-KV); each has its own tile
  double border;  ///< additional keys due to the border of a window
  double tiles() const { return units * ceil_div(rows, 64); }
};

/// Constants of kernels that loop over tiles of query rows.
struct TileCosts : CacheReads {
  double launch_us = 9.0, launch_head_dim_us = 1.0;
  double head_ns = 0.3, tile_us = 2.2, tile_growth = 0.3, tile_row_us = 0.012;
  double compute_fraction = 0.5, combine_us = 1.4;
};
template <class P>
inline constexpr std::array<Parameter<P>, 8> kTileCostFields{{
    {"launch_us", &P::launch_us, 0.0, 30.0, Transfer::kLaunch, "launch of the cache write and the attention kernel"},
    {"launch_head_dim_us", &P::launch_head_dim_us, 0.0, 5.0, Transfer::kCycles,
     "additional launch time per 128 of head dimension"},
    {"head_ns", &P::head_ns, 0.0, 2.0, Transfer::kCycles, "q and output, per sequence, head and 128 of head dimension"},
    {"tile_us", &P::tile_us, 0.0, 12.0, Transfer::kCycles, "start and end of a tile at head dimension 64"},
    {"tile_growth", &P::tile_growth, 0.0, 2.0, Transfer::kKept, "relative growth of tile_us per 64 of head dimension"},
    {"tile_row_us", &P::tile_row_us, 0.0, 0.5, Transfer::kCycles,
     "additional tile time per query row and 128 of head dimension"},
    {"compute_fraction", &P::compute_fraction, 0.05, 1.0, Transfer::kKept,
     "share of the datasheet peak in the padded GEMMs"},
    {"combine_us", &P::combine_us, 0.0, 10.0, Transfer::kCycles, "merging the partial outputs of a split context"},
}};
/// path = max(waves x keys, longest) / splits x row + (waves - 1) tile.
DecodeTime time_of(const TileGrid& grid, const DecodeCall& call, const TileCosts& p, const Chip& chip, double slowdown);

/// Smallest number of splits whose waves are at least 85 % as full as the best (FlashAttention-2's
/// num_splits_heuristic).
double fa2_splits(double tiles, double slots, double blocks);

}  // namespace roofcast::attention
