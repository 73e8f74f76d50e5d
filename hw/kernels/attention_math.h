#pragma once
// Helpers of the attention kernels: visible pairs, tiles of a causal triangle, datasheet figures.

#include <algorithm>
#include <cmath>

#include "hw/cost.h"
#include "hw/gpu_spec.h"
#include "hw/kernel.h"
#include "hw/kernels/attention.h"
#include "hw/kernels/l2.h"

namespace roofcast {
struct CallTraits;
}
namespace roofcast::attention {

inline double ceil_div(double a, double b) { return std::ceil(a / b); }

/// (a^p + b^p)^(1/p): the sum for p = 1, the maximum for large p. Models two resources that partly overlap.
inline Seconds overlapped(Seconds a, Seconds b, double p) {
  const Seconds longer = std::max(a, b), shorter = std::min(a, b);
  if (shorter <= Seconds{}) return longer;
  if (p == 1.0) return longer + shorter;
  return longer * std::exp(std::log1p(std::exp(p * std::log(shorter / longer))) / p);
}

/// Visible (query, key) pairs of one head. Query i of `queries` follows `before` cached tokens and sees min(before + i,
/// window) keys, including its own. Without a window: before q + q (q + 1) / 2.
inline double visible_pairs(double before, double queries, double window) {
  const double growing = window > 0 ? std::clamp(window - before, 0.0, queries) : queries;
  return before * growing + growing * (growing + 1) / 2 + (queries - growing) * window;
}

/// Keys visible to at least one of the last `queries` tokens of `context`.
inline double visible_keys(double context, double queries, double window) {
  return window > 0 ? std::min(context, window + queries - 1) : context;
}

/// Shares that Triton kernels reach: of the 16-bit peak in prefill, of the memory bandwidth in decode (head dimension
/// 192 on B200).
inline constexpr double kTritonCompute = 0.03, kTritonBandwidth = 0.2;

/// Datasheet figures that the attention kernels use.
struct Chip {
  double sms = 1;
  FlopsPerSecond peak;  ///< dense peak in the products' format
  BytesPerSecond bandwidth;
  Bytes l2;
  Architecture architecture = Architecture::kGeneric;
  FlopsPerSecond per_sm() const { return peak / sms; }
};
Chip chip_of(const GpuSpec& gpu, Dtype compute);
/// Rate of reading data that preceding kernels wrote: from L2 while they fit, else from memory. `fraction`: reached
/// share of the memory bandwidth on this GPU. `measured`: that share on the GPU it was measured on; it also scales L2,
/// because an SM reads the same bytes per cycle from L2 on every GPU.
inline BytesPerSecond reading_rate(Bytes traffic, const Chip& chip, double fraction, double measured) {
  return std::max(fraction * chip.bandwidth, measured * BytesPerSecond(rate_with_l2(chip.sms, chip.l2, traffic, 0.0)));
}
/// The constants before any transfer to another GPU.
const ConstantsBlock& as_measured(const ConstantsBlock& constants);

/// Whether the GEMMs over this cache can run in fp8: the GPU supports it, and the query is quantized.
bool multiplies_fp8(const GpuSpec& gpu, Dtype compute, Dtype kv);
inline bool computes_fp8(const GpuSpec& gpu, Dtype dtype) {
  return element_bits(dtype) <= 8 && gpu.peak(Dtype::kFp8) > FlopsPerSecond{};
}

/// What rules for kernels of attention may test, in prefill and in decode.
CallTraits call_traits(const AttentionHeads& heads, double query_len, const GpuSpec& gpu);

/// Bytes of keys and values of one cached token with their scales, over all heads of the GPU.
double cached_row_bytes(const AttentionHeads& heads);

/// Time to unpack integers and 4-bit floats of a cache on the CUDA cores: three operations per value (mask or shift,
/// convert, combined scale and shift) on pairs of 16-bit values, at the fp32 rate. QServe (Lin et al. 2024,
/// arXiv:2405.04532, section 5.3) counts five before such optimizations, and finds 4-bit caches bound by them on an
/// A100.
Seconds unpacking_time(double cached_values, Dtype kv, const GpuSpec& gpu);

/// Time to convert fp8 values in kernels on CUDA cores that read the cache once per query head. GPUs with fp8 convert
/// in hardware. Others take `operations` per value (mask, shift, add to the exponent; through fp32 and back in some
/// libraries).
Seconds scalar_fp8_time(double read_values, double operations, Dtype kv, const GpuSpec& gpu);

/// The launch constants of attention are those of a kernel alone in a CUDA graph, including the gap between two graph
/// launches. In the graph of a whole model the next kernel is already queued, so the gap vanishes. At least
/// kQueuedLaunch of the launch remains.
inline constexpr Seconds kLoneGraphGap{3.0e-6};
inline constexpr Seconds kQueuedLaunch{2.0e-6};
inline Seconds queued_launch(Seconds alone) { return std::max(alone - kLoneGraphGap, std::min(alone, kQueuedLaunch)); }

/// Tiling of one launch of the prefill kernel.
struct PrefillTiling {
  double units = 1;        ///< independent (sequence, head) grids of tiles
  double tiles = 1;        ///< query tiles per unit
  double tile_rows = 128;  ///< query rows per tile
  double tile_keys = 128;  ///< keys per block
  double positions = 128;  ///< token positions per tile: tile_rows / group if query heads of a group are packed
  double before = 0, queries = 1, window = 0;
  double head_dim = 128;
  bool splits_keys = false;  ///< few tiles are split over the keys (FlashAttention-3)
  bool persistent = false;   ///< tiles are scheduled longest first, even if all fit at once
};

/// Constants of the tile loop of a prefill kernel.
struct PrefillTileCosts {
  Seconds score;  ///< one score element on one SM: exponential and both GEMMs
  Seconds tile;
  double imbalance = 12;
  double lone_slowdown = 1;
  double window_blocks = 0;
  Seconds combine;
};

/// Time of the tile loop, without the launch: docs/equations-attention.md#prefill.
Seconds prefill_makespan(const PrefillTiling& tiling, const PrefillTileCosts& costs, double sms);

}  // namespace roofcast::attention
