#include "hw/kernels/attention_math.h"

#include "base/error.h"
#include "hw/kernel_rules.h"

namespace roofcast::attention {

Chip chip_of(const GpuSpec& gpu, Dtype compute) {
  FlopsPerSecond peak = gpu.peak(compute);
  if (peak <= FlopsPerSecond{}) peak = gpu.peak(Dtype::kBf16);
  if (peak <= FlopsPerSecond{}) peak = gpu.peak(Dtype::kFp16);
  SIM_CHECK(peak > FlopsPerSecond{}, "a GPU without a 16 bit peak");
  return {static_cast<double>(gpu.sm_count), peak, gpu.memory_bandwidth, gpu.l2_cache, gpu.architecture};
}

const ConstantsBlock& as_measured(const ConstantsBlock& constants) {
  return constants.carried ? as_measured(constants.carried->measured) : constants;
}

bool multiplies_fp8(const GpuSpec& gpu, Dtype compute, Dtype kv) {
  const bool narrow = element_bits(compute) <= 8 || kv == Dtype::kFp8 || kv == Dtype::kFp8Block;
  return narrow && gpu.peak(Dtype::kFp8) > FlopsPerSecond{};
}

CallTraits call_traits(const AttentionHeads& heads, double query_len, const GpuSpec& gpu) {
  CallTraits traits(gpu);
  traits.products_bits = multiplies_fp8(gpu, heads.compute, heads.kv) ? 8 : 16;
  traits.cache_bits = element_bits(heads.kv);
  traits.head_dim = heads.head_dim;
  traits.window = heads.window > 0;
  traits.group = heads.heads / heads.kv_heads;
  traits.query_len = query_len;
  traits.always_split = heads.kernel == AttentionKernel::kSplit;
  return traits;
}

double cached_row_bytes(const AttentionHeads& h) {
  return h.kv_heads * (cached_bytes(h.kv, h.head_dim) + cached_bytes(h.kv, h.value_dim));
}

Seconds unpacking_time(double cached_values, Dtype kv, const GpuSpec& gpu) {
  const bool packed = kv == Dtype::kInt8 || element_bits(kv) < 8.0;
  if (!packed || gpu.peak(Dtype::kFp32) <= FlopsPerSecond{}) return Seconds{};
  return Flops(3.0 * cached_values) / gpu.peak(Dtype::kFp32);
}

Seconds scalar_fp8_time(double read_values, double operations, Dtype kv, const GpuSpec& gpu) {
  const bool by_hand = (kv == Dtype::kFp8 || kv == Dtype::kFp8Block) && gpu.peak(Dtype::kFp8) <= FlopsPerSecond{};
  if (!by_hand || gpu.peak(Dtype::kFp32) <= FlopsPerSecond{}) return Seconds{};
  return Flops(2.0 * operations * read_values) / gpu.peak(Dtype::kFp32);  // a fused multiply-add counts as two
}

namespace {

/// Key blocks that the first m query tiles of a causal triangle see. Tiles have r positions, blocks N keys. Tile i sees
/// ceil((i + 1) r / N) blocks; all tiles together see (m (m + 1) / 2) r / N plus the rounding of each.
double causal_blocks(double m, double r, double n_keys) {
  const double ratio = r / n_keys;
  return std::max(m, m * (m + 1) / 2 * ratio + m * std::max(0.0, (1 - ratio) / 2));
}

struct Blocks {
  double total, longest;  ///< of a unit; of its longest tile
};

/// A prefix of P cached tokens adds P / N blocks to every tile. A window w limits each tile to w + r keys and adds
/// blocks for the masks at its borders.
Blocks blocks_of(const PrefillTiling& t, double window_blocks) {
  const double all = ceil_div(t.before + t.queries, t.tile_keys);
  const double prefix = t.before / t.tile_keys;
  const double total = std::min(causal_blocks(t.tiles, t.positions, t.tile_keys) + t.tiles * prefix, t.tiles * all);
  if (t.window <= 0 || t.window >= t.before + t.queries) return {total, all};
  const double seen =
      std::min((t.window + t.positions) / t.tile_keys + std::max(0.0, 1 - t.positions / t.tile_keys), all);
  const double growing = std::min(std::floor(std::max(0.0, t.window - t.before) / t.positions), t.tiles);
  const double cut = causal_blocks(growing, t.positions, t.tile_keys) + growing * prefix + (t.tiles - growing) * seen;
  return {std::min(total, cut) + t.tiles * window_blocks, std::max(seen, 1.0) + window_blocks};
}

}  // namespace

Seconds prefill_makespan(const PrefillTiling& t, const PrefillTileCosts& costs, double sms) {
  const Blocks blocks = blocks_of(t, costs.window_blocks);
  const Seconds block = t.tile_rows * t.tile_keys * costs.score;
  const Seconds mean = t.units / sms * (blocks.total * block + t.tiles * costs.tile);
  Seconds longest = costs.tile + blocks.longest * block * costs.lone_slowdown;
  if (t.splits_keys && t.units * t.tiles < 0.8 * sms && blocks.longest > 4) {
    const double splits = std::max(1.0, std::floor(sms / (t.units * t.tiles)));
    longest = costs.tile + blocks.longest * block / splits + costs.combine;
  }
  const bool queued = t.persistent || t.units * t.tiles > sms;
  const Seconds span = queued ? overlapped(mean, longest, costs.imbalance) : longest;
  const Seconds waves = ceil_div(t.units * t.tiles, sms) * (costs.tile + block);
  return std::max(span, waves) - costs.tile;
}

}  // namespace roofcast::attention
