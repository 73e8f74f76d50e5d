#include <algorithm>

#include "hw/kernels/decode/tiles.h"

namespace roofcast::attention {

DecodeTime time_of(const TileGrid& grid, const DecodeCall& c, const TileCosts& p, const Chip& chip, double slowdown) {
  const double d = c.dim, width = d / 128, sms = chip.sms, blocks = grid.tiles() * grid.splits;
  const double waves = ceil_div(blocks, sms), seen = c.visible + grid.border;
  const Seconds row = Flops(2 * grid.padded * c.dims) / (chip.per_sm() * p.compute_fraction) * slowdown;
  const Seconds tile =
      (p.tile_us * (1 + p.tile_growth * (d - 64) / 64) + p.tile_row_us * grid.rows * width) * kMicrosecond;
  const Seconds launch = launch_at(p.launch_us, p.launch_head_dim_us, d);
  return {.launch = launch + c.heads * width * p.head_ns * 1e-3 * kMicrosecond,
          .path = std::max(waves * seen, c.longest_visible + grid.border) / grid.splits * row + (waves - 1) * tile,
          .combine = (grid.splits > 1 ? p.combine_us : 0.0) * kMicrosecond,
          .overlap = 8,
          .filled = blocks >= sms};
}

double fa2_splits(double tiles, double slots, double blocks) {
  if (tiles >= 0.8 * slots) return 1;
  const double most = std::min({128.0, slots, blocks});
  const auto fill = [&](double s) { return tiles * s / slots / ceil_div(tiles * s, slots); };
  const auto distinct = [&](double s) { return s == 1 || ceil_div(blocks, s) != ceil_div(blocks, s - 1); };
  double best = 0;
  for (double s = 1; s <= most; ++s) best = distinct(s) ? std::max(best, fill(s)) : best;
  for (double s = 1; s <= most; ++s) {
    if (distinct(s) && fill(s) >= 0.85 * best) return s;
  }
  return 1;
}

}  // namespace roofcast::attention
