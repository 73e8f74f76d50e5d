#include <array>

#include "base/error.h"
#include "hw/kernels/attention_math.h"
#include "hw/kernels/gemm_tiles.h"

namespace roofcast {

std::span<const Parameter<DecodeParameters>> DecodeParameters::fields() {
  using P = DecodeParameters;
  using enum Transfer;
  static constexpr std::array<Parameter<P>, 36> kFields{{
      {"launch_us", &P::launch_us, 0.0, 30.0, kLaunch, "launch of the cache write and the attention kernel"},
      {"launch_head_dim_us", &P::launch_head_dim_us, 0.0, 5.0, kCycles, "more of it for each 128 of head dimension"},
      {"sequence_ns", &P::sequence_ns, 0.0, 50.0, kCycles, "of the tile scheduler's scan, a sequence"},
      {"head_ns", &P::head_ns, 0.0, 2.0, kCycles, "of q and output, a sequence, head and 128 of head dimension"},
      {"tile_us", &P::tile_us, 0.0, 12.0, kCycles, "start and end of a tile at head dimension 64"},
      {"tile_growth", &P::tile_growth, 0.0, 2.0, kKept, "relative growth of it for each 64 of head dimension"},
      {"tile_row_us", &P::tile_row_us, 0.0, 0.5, kCycles, "more of it for each query row and 128 of head dimension"},
      {"row_ns", &P::row_ns, 0.0, 30.0, kCycles, "of a cached token in one tile at head dimension 64 (XQA)"},
      {"row_growth", &P::row_growth, 0.0, 5.0, kKept, "relative growth of it for each 64 of head dimension (XQA)"},
      {"row_group", &P::row_group, 0.0, 5.0, kKept, "relative growth of it for each 8 query rows beyond 8 (XQA)"},
      {"row_busy", &P::row_busy, 0.0, 1.0, kKept, "share of the rows of further waves that is not hidden (XQA)"},
      {"group_us", &P::group_us, 0.0, 1.0, kCycles, "more to start for each query row beyond 8 (XQA)"},
      {"compute_fraction", &P::compute_fraction, 0.05, 1.0, kKept, "of the datasheet peak, in the padded products"},
      {"convert_ns", &P::convert_ns, 0.0, 20.0, kCycles,
       "of transposing an fp8 v, a cached token and 128 of head dimension"},
      {"convert_wide_ns", &P::convert_wide_ns, 0.0, 20.0, kCycles, "more of it at head dimensions over 128"},
      {"overlap", &P::overlap, 1.0, 8.0, kKept, "of tiles and memory; 1: they add, large: the larger counts (XQA)"},
      {"scalar_overlap", &P::scalar_overlap, 1.0, 8.0, kKept, "the same (MMHA)"},
      {"window_us", &P::window_us, 0.0, 8.0, kCycles, "of a tile's masking at the border of a window"},
      {"sink_us", &P::sink_us, 0.0, 8.0, kCycles,
       "of the kernel that is not fused at head dimension 64 with an fp8 cache (XQA)"},
      {"swap_us", &P::swap_us, 0.0, 15.0, kCycles, "of the two copies that fold a group into the rows of a tile (FA2)"},
      {"ungrouped_slowdown", &P::ungrouped_slowdown, 1.0, 4.0, kKept, "of a row without grouped queries (FA2)"},
      {"uncut_slowdown", &P::uncut_slowdown, 1.0, 4.0, kKept,
       "of a cached token of one head in a context not cut (paged)"},
      {"bandwidth_fraction", &P::bandwidth_fraction, 0.1, 0.95, kMemoryShare, "of the datasheet memory bandwidth"},
      {"l2_share", &P::l2_share, 0.05, 1.0, kKept,
       "of the L2 that a benchmark's loop finds its cache in; served: none"},
      {"l2_cliff", &P::l2_cliff, 0.5, 10.0, kKept, "how fast that share is lost as the cache outgrows it"},
      {"benchmark_reuse", &P::benchmark_reuse, 0.0, 0.7, kKept,
       "share of a benchmark's cache that is no new data (TensorRT-LLM before Hopper)"},
      {"l2_bandwidth_tb_per_s", &P::l2_bandwidth_tb_per_s, 1.0, 25.0, kL2Rate, "of the L2, in that loop"},
      {"combine_us", &P::combine_us, 0.0, 10.0, kCycles, "merging the partial outputs of a split context"},
      {"split_ns", &P::split_ns, 0.0, 300.0, kCycles, "more of it for each split (XQA)"},
      {"scalar_launch_us", &P::scalar_launch_us, 0.0, 30.0, kLaunch,
       "launch of the kernel without tensor cores (MMHA)"},
      {"scalar_context_us", &P::scalar_context_us, 0.0, 5.0, kCycles,
       "more of it once every group of threads has a key to read (MMHA)"},
      {"scalar_busy_us", &P::scalar_busy_us, 0.0, 5.0, kCycles, "the same, of each further wave (MMHA)"},
      {"scalar_wave_us", &P::scalar_wave_us, 0.0, 15.0, kCycles, "of each further wave of blocks (MMHA)"},
      {"scalar_row_ns", &P::scalar_row_ns, 0.0, 100.0, kCycles,
       "of a cached token of one head at head dimension 64 (MMHA)"},
      {"scalar_lone", &P::scalar_lone, 0.0, 4.0, kKept, "that time of a block alone on its SM, in its units (MMHA)"},
      {"scalar_combine_us", &P::scalar_combine_us, 0.0, 20.0, kCycles, "merging a split context (MMHA)"},
  }};
  return kFields;
}

namespace {

/// Operations that turn an fp8 value of the cache into the kernel's own format on a GPU without fp8, from steps of
/// llama-3.1-8b on an A100 with either cache (Argonne LLM-Inference-Bench): 9.6 ps a value under TensorRT-LLM, 20 under
/// vLLM, each for the four query heads of a group.
constexpr double kMmhaConversion = 24, kPagedConversion = 50;

using attention::ceil_div;
using attention::Chip;
using attention::Library;

/// What a decode kernel is given.
struct DecodeCall {
  double units;  ///< (sequence, kv head) pairs
  double rows;   ///< query rows that share one read of the cache: group x query_len
  double group;
  double heads;  ///< (sequence, head) pairs
  double context, visible, longest, longest_visible;
  double dim, dims;  ///< mean of k and v; their sum
  bool has_window, fp8;
  bool windowed;  ///< the layer has a window, reached or not
  double query_len;
  double batch, kv_heads;
  bool shared_reads;
  bool split;  ///< always_split() in place of FlashAttention-2
};

/// The path is the longest chain of tiles on one SM.
struct DecodeTime {
  Seconds launch, path, combine;
  double overlap = 3;
  bool filled = true;           ///< every SM has work
  double reused = 0.0;          ///< share of the cache that a benchmark reads twice
  double reads = 1.0;           ///< times that the cache comes from memory
  double fp8_operations = 0.0;  ///< to convert a value, of kernels that read the cache a query head
};

DecodeCall call_of(const DecodeShape& s, const AttentionHeads& h, bool fp8) {
  const double longest = std::max(s.max_context, s.mean_context);
  return {.units = s.batch * h.kv_heads,
          .rows = h.heads / h.kv_heads * s.query_len,
          .group = h.heads / h.kv_heads,
          .heads = s.batch * h.heads,
          .context = s.mean_context,
          .visible = attention::visible_keys(s.mean_context, s.query_len, h.window),
          .longest = longest,
          .longest_visible = attention::visible_keys(longest, s.query_len, h.window),
          .dim = (h.head_dim + h.value_dim) / 2,
          .dims = h.head_dim + h.value_dim,
          .has_window = h.window > 0 && h.window<longest, .fp8 = fp8, .windowed = h.window> 0,
          .query_len = s.query_len,
          .batch = s.batch,
          .kv_heads = h.kv_heads,
          .shared_reads = h.shared_reads,
          .split = h.kernel == AttentionKernel::kSplit || element_bits(h.kv) <= 8};
}

/// Bytes at the bandwidth reached. A benchmark repeats one layer and finds part of its cache in the L2: all of what
/// fits `l2_share` of it, `least_hit` from 1 + 1/l2_cliff times that on. In serving the other layers have evicted it.
Seconds memory_time(Bytes bytes, const DecodeParameters& p, const Chip& chip, Timing timing, double least_hit) {
  const double over = bytes / (chip.l2 * p.l2_share) - 1;
  const double hit = timing == Timing::kBenchmark ? std::clamp(1 - p.l2_cliff * over, least_hit, 1.0) : 0.0;
  const BytesPerSecond l2(p.l2_bandwidth_tb_per_s * 1e12);
  return bytes * (1 - hit) / (chip.bandwidth * p.bandwidth_fraction) + bytes * hit / std::max(l2, chip.bandwidth);
}

Seconds launch_of(const DecodeParameters& p, double dim) {
  return (p.launch_us + p.launch_head_dim_us * dim / 128) * kMicrosecond;
}

/// Smallest split whose last wave is filled to 85 % of the best (FlashAttention-2's num_splits_heuristic).
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

/// How FlashAttention-3 cuts one context into key blocks and splits.
struct Fa3Cut {
  double splits, rows;  ///< rows: keys that the busiest split walks
};
Fa3Cut fa3_cut(double context, double visible, double keys, double share, bool captured, bool has_window) {
  const double all = ceil_div(context, keys);
  const double blocks = all - std::floor((context - visible) / keys);
  const double splits = captured ? std::min({blocks, ceil_div(all, share), 32.0}) : 1.0;
  double rows = has_window ? blocks * keys : visible;
  if (splits > 1 || !has_window) rows = std::min(rows, ceil_div(blocks, splits) * keys);
  return {splits, rows};
}

/// FlashAttention-3, paged. Query rows are packed into tiles of M and paid for in full. With up to 512 sequences
/// (graph-captured) a context is cut so that at most 1.1 x blocks / SMs fall to a split, in at most 32.
/// FlashAttention-4, which runs heads wider than 256, starts all 32 for every sequence: those without keys load queries
/// and write a tile.
DecodeTime fa3(const DecodeCall& c, const DecodeParameters& p, const Chip& chip) {
  const double d = c.dim, width = d / 128, sms = chip.sms;
  const double tile_rows = d <= 64 ? 192 : 128;
  const double keys = c.fp8 ? (d > 192 ? 128 : 160) : d <= 128 ? 128 : d <= 192 ? 96 : 64;
  const double share = std::ceil(1.1 * c.units * ceil_div(c.context, keys) / sms);
  const bool captured = c.batch <= 512;
  const Fa3Cut mean = fa3_cut(c.context, c.visible, keys, share, captured, c.has_window);
  const Fa3Cut longest = fa3_cut(c.longest, c.longest_visible, keys, share, captured, c.has_window);
  const double tiles = c.units * ceil_div(c.rows, tile_rows), waves = ceil_div(tiles * mean.splits, sms);
  const double started = captured && d > 256 ? ceil_div(tiles * 32, sms) : waves;
  Seconds row = Flops(2 * tile_rows * c.dims) / (chip.per_sm() * p.compute_fraction);
  if (c.fp8) row += (p.convert_ns + (d > 128 ? p.convert_wide_ns : 0.0)) * width * 1e-3 * kMicrosecond;
  const Seconds border = (c.has_window ? p.window_us : 0.0) * kMicrosecond;
  const Seconds tile =
      (p.tile_us * (1 + p.tile_growth * (d - 64) / 64) + p.tile_row_us * c.rows * width) * kMicrosecond + border;
  const double scans = captured ? 2 : 1;
  return {.launch = launch_of(p, d) + c.batch * scans * p.sequence_ns * 1e-3 * kMicrosecond,
          .path = std::max(waves * mean.rows, longest.rows) * row + (started - 1) * tile + border,
          .combine = (longest.splits > 1 ? p.combine_us : 0.0) * kMicrosecond,
          .overlap = 3,
          .filled = c.units * mean.splits >= sms};
}

/// One launch whose blocks compute `padded` query rows each.
struct TileGrid {
  double units;   ///< (sequence, head) pairs that a tile belongs to
  double rows;    ///< query rows of a unit
  double padded;  ///< rows that a tile computes
  double splits;  ///< parts of a context, each with a tile of its own
  double border;  ///< keys more that a window's border costs
  double tiles() const { return units * ceil_div(rows, 64); }
};

/// path = max(waves x keys, longest) / splits x row + (waves - 1) tile.
DecodeTime time_of(const TileGrid& grid, const DecodeCall& c, const DecodeParameters& p, const Chip& chip,
                   double slowdown) {
  const double d = c.dim, width = d / 128, sms = chip.sms, blocks = grid.tiles() * grid.splits;
  const double waves = ceil_div(blocks, sms), seen = c.visible + grid.border;
  const Seconds row = Flops(2 * grid.padded * c.dims) / (chip.per_sm() * p.compute_fraction) * slowdown;
  const Seconds tile =
      (p.tile_us * (1 + p.tile_growth * (d - 64) / 64) + p.tile_row_us * grid.rows * width) * kMicrosecond;
  return {.launch = launch_of(p, d) + c.heads * width * p.head_ns * 1e-3 * kMicrosecond,
          .path = std::max(waves * seen, c.longest_visible + grid.border) / grid.splits * row + (waves - 1) * tile,
          .combine = (grid.splits > 1 ? p.combine_us : 0.0) * kMicrosecond,
          .overlap = 8,
          .filled = blocks >= sms};
}

/// trtllm-gen: rows padded to 8, a context in at most 16 parts of `split_keys` tokens or more.
DecodeTime trtllm_gen(const DecodeCall& c, const DecodeParameters& p, const Chip& chip, double split_keys) {
  const double border = c.has_window ? 64 : 0;
  TileGrid grid{c.units, c.rows, std::min(8 * ceil_div(c.rows, 8), 64.0), 1, border};
  const double parts = ceil_div(c.longest_visible + border, split_keys);
  grid.splits = std::clamp(std::min(parts, std::floor(chip.sms / grid.tiles())), 1.0, 16.0);
  return time_of(grid, c, p, chip, 1.0);
}

/// FlashAttention-2. One new token of grouped heads without a window: the heads of a group are folded into the rows of
/// a tile, and the context is split. Anything else runs one block per query head, which walks the whole context.
/// Source: Dao-AILab/flash-attention (BSD-3), csrc/flash_attn/flash_api.cpp, mha_varlen_fwd: seqlenq_ngroups_swapped,
/// and num_splits, which only that branch sets.
DecodeTime flash_attention_2(const DecodeCall& c, const DecodeParameters& p, const Chip& chip) {
  const bool folded = c.group > 1 && c.query_len == 1 && !c.windowed;
  TileGrid grid{folded ? c.units : c.heads, folded ? c.rows : c.query_len, 64, 1, 0};
  if (folded) grid.splits = fa2_splits(grid.tiles(), 2 * chip.sms, ceil_div(c.longest, 128));
  DecodeTime time = time_of(grid, c, p, chip, folded ? 1.0 : p.ungrouped_slowdown);
  if (folded && c.batch > 1 && c.kv_heads > 1) time.launch += p.swap_us * kMicrosecond;
  return time;
}

/// FlashInfer where wgmma and tcgen05 are missing, flash_attn_with_kvcache, and what AMD GPUs run: rows of a group are
/// packed and contexts split whatever the shape, by the keys that are visible. Constants are those of FlashAttention-2.
/// Source: flashinfer-ai/flashinfer (Apache-2.0), include/flashinfer/attention/scheduler.cuh.
DecodeTime always_split(const DecodeCall& c, const DecodeParameters& p, const Chip& chip) {
  TileGrid grid{c.units, c.rows, 64, 1, 0};
  grid.splits = fa2_splits(grid.tiles(), 2 * chip.sms, ceil_div(c.longest_visible, 128));
  return time_of(grid, c, p, chip, 1.0);
}

/// XQA: tensor cores, cut by the whole context even under a window: cuts outside it start and exit.
/// Versions since 1.1 cut at most sqrt(context / 16) times (`limited`). A lone block walks its keys at the latency of
/// its loop; further waves are hidden in part. Hopper's kernel for fp8 caches (`by_wgmma`) has two blocks resident on
/// an SM while their queries fit.
DecodeTime xqa(const DecodeCall& c, const DecodeParameters& p, const Chip& chip, bool by_wgmma, bool limited) {
  const double padded = c.dim <= 64 ? 64 : c.dim <= 128 ? 128 : ceil_div(c.dim, 256) * 256;
  const double width = padded / 128, steps = 2 * width - 1;
  const double query_rows = c.rows <= 8 ? 8 : ceil_div(c.rows, 16) * 16;
  const double limit = limited ? std::sqrt(c.longest / 16) : c.longest;
  const double splits = std::max(1.0, std::floor(std::min({c.longest / 128, limit, 8 * chip.sms / c.units})));
  const double active = std::min(1.0, ceil_div(c.visible, c.context / splits) / splits);
  const double resident = by_wgmma && query_rows * padded < 4096 ? 2 : 1;
  const double waves = ceil_div(c.units * splits, resident * chip.sms);
  const double idle = by_wgmma ? 0.05 : 0.6;
  const double more_rows = std::max(0.0, query_rows - 8);
  const Seconds tile = (p.tile_us * (1 + p.tile_growth * steps) + p.tile_row_us * c.rows * width) * kMicrosecond;
  const double per_row = p.row_ns * (1 + p.row_growth * steps) * (1 + p.row_group * more_rows / 8);
  const double deep = 1 + p.row_busy * (std::max(1.0, waves * active) - 1);
  const double rows =
      std::max(deep * std::min(c.visible, c.context / splits), std::min(c.longest_visible, c.longest / splits));
  const double start = (by_wgmma && c.dim == 64 ? p.sink_us : 0.0) + p.group_us * more_rows * (1 + width) / 2;
  return {.launch = launch_of(p, c.dim) + start * kMicrosecond,
          .path = (waves - 1) * tile * (active + idle * (1 - active)) + rows * per_row * 1e-3 * kMicrosecond,
          .combine = (splits > 1 ? p.combine_us + splits * p.split_ns * 1e-3 : 0.0) * kMicrosecond,
          .overlap = p.overlap,
          .filled = c.units * splits >= chip.sms,
          .reused = p.benchmark_reuse};
}

/// How masked multi-head attention is launched: `threads` a block, a block a query head and cut of its context.
struct MmhaGrid {
  double threads, splits;
  double resident() const { return 1024 / threads; }  ///< blocks on an SM, by registers
};

/// Blocks have 256 threads, and 512 or 1024 where there are too few of them to give every SM four. The largest are cut
/// while one wave holds them, each to at least one round of its loop, eight keys a group of d / 8 threads.
/// Source: TensorRT-LLM, kernels/decoderMaskedMultiheadAttention (Apache-2.0), facts of its launch rule.
MmhaGrid mmha_grid(const DecodeCall& c, double sms) {
  const double factor = ceil_div(4 * sms, c.heads);
  const double threads = c.heads >= 4 * sms || factor < 2 ? 256 : factor < 4 ? 512 : 1024;
  if (threads < 1024) return {threads, 1};
  const double round = 8 * threads / (c.dim / 8);
  return {threads, std::max(1.0, std::min(ceil_div(c.longest + 1, round), ceil_div(sms, c.heads)))};
}

/// Masked multi-head attention on CUDA cores. Blocks run in waves; a wave takes as long as its threads' latency or the
/// keys its SMs walk, nearly the longer. Below a key for each group of d / 8 threads most of the latency is not paid.
/// A benchmark whose keys and values are the same pages finds the values in the L2 while the resident blocks' keys fit.
DecodeTime mmha(const DecodeCall& c, const DecodeParameters& p, const Chip& chip, bool is_gen) {
  const double sms = chip.sms;
  const MmhaGrid grid = mmha_grid(c, sms);
  const double blocks = c.heads * grid.splits, slots = sms * grid.resident(), waves = ceil_div(blocks, slots);
  const double cut = c.visible / grid.splits, longest = c.longest_visible / grid.splits;
  const double busy = std::min(1.0, cut * c.dim / (8 * grid.threads));
  const Seconds row = p.scalar_row_ns * std::pow(c.dim / 64, 0.7) * 1e-3 * kMicrosecond;
  const double rows = std::max(std::max(waves * p.scalar_lone, blocks / sms) * cut, p.scalar_lone * longest);
  double launch = p.scalar_launch_us + p.scalar_context_us * busy;
  if (!is_gen) launch += p.launch_head_dim_us * c.dim / 128;
  const Seconds further = (waves - 1) * (p.scalar_wave_us + p.scalar_busy_us * busy) * kMicrosecond;
  const Bytes keys(std::min(blocks, slots) * c.kv_heads * c.batch / c.heads * cut * c.dim * (c.fp8 ? 1 : 2));
  return {.launch = launch * kMicrosecond,
          .path = attention::overlapped(further, rows * row, 2),
          .combine = (grid.splits > 1 ? p.scalar_combine_us : 0.0) * kMicrosecond,
          .overlap = p.scalar_overlap,
          .filled = blocks >= sms,
          .reused = keys < chip.l2 ? p.benchmark_reuse : 0.0,
          .fp8_operations = kMmhaConversion};
}

/// vLLM's own paged attention, its only kernel on AMD GPUs for years: a block of threads a query head, which reads the
/// cache for itself. A context of several partitions is cut into them while sequences x heads are at most 512, and
/// walked whole beyond that (vllm/attention/ops/paged_attn.py). Blocks that walk a context whole drift apart, and each
/// query head of a group reads the cache from memory; those of a partition find it in the L2.
DecodeTime paged(const DecodeCall& c, const DecodeParameters& p, const Chip& chip) {
  constexpr double kPartition = 512, kCutHeads = 512;
  const double partitions = ceil_div(c.longest, kPartition);
  const bool whole = partitions > 1 && c.heads > kCutHeads;
  const double splits = whole ? 1 : partitions;
  const double row = p.scalar_row_ns * std::pow(c.dim / 64, 0.7) * (whole ? p.uncut_slowdown : 1.0);
  const double rows = std::max(c.heads * c.visible / chip.sms, p.scalar_lone * c.longest_visible / splits);
  return {.launch = launch_of(p, c.dim),
          .path = rows * row * 1e-3 * kMicrosecond,
          .combine = (splits > 1 ? p.scalar_combine_us : 0.0) * kMicrosecond,
          .overlap = p.scalar_overlap,
          .filled = c.heads * splits >= chip.sms,
          .reads = whole ? c.group : 1.0,
          .fp8_operations = kPagedConversion};
}

/// Which kernel an engine picks, and its time in parts.
DecodeTime dispatch(const DecodeCall& c, const DecodeParameters& p, const Chip& chip, const GpuSpec& gpu,
                    KernelFamily family) {
  const bool trtllm = family == KernelFamily::kTrtllm;
  switch (attention::library_of(gpu, family)) {
    case Library::kFa3:
      return c.shared_reads ? fa3(c, p, chip) : paged(c, p, chip);
    case Library::kFa2:
      if (!c.shared_reads) return paged(c, p, chip);
      if (c.split || !has_mma_sync_only(gpu)) return always_split(c, p, chip);
      return flash_attention_2(c, p, chip);
    case Library::kTrtllmGen:
      if (trtllm && c.group > 32) return mmha(c, p, chip, true);
      return trtllm_gen(c, p, chip, c.fp8 && !trtllm ? 256 : 512);
    case Library::kXqa:
      break;
  }
  const bool hopper = gpu.architecture == Architecture::kHopper, by_wgmma = c.fp8 && hopper;
  const bool enough = 4 * c.units * std::max(1.0, std::floor(c.longest / 128)) >= chip.sms || by_wgmma;
  const bool grouped = c.group >= 2 && c.group <= 32 && enough && c.shared_reads;
  const bool verifies = c.rows > c.group;
  return grouped || verifies ? xqa(c, p, chip, by_wgmma, hopper) : mmha(c, p, chip, false);
}

Cost work_of(const DecodeShape& s, const AttentionHeads& h) {
  const double dims = h.head_dim + h.value_dim;
  const double keys = attention::visible_keys(s.mean_context, s.query_len, h.window);
  const double pairs = attention::visible_pairs(s.mean_context - s.query_len, s.query_len, h.window);
  Cost cost;
  cost.flops = Flops(s.batch * h.heads * pairs * 2 * dims);
  cost.bytes = Bytes(s.batch * (keys * attention::cached_row_bytes(h) + s.query_len * h.heads * dims * 2));
  return cost;
}

/// Plain kernels of a decode step: two products over the whole cache and a softmax, its scores moved four times.
Cost naive_decode(const DecodeShape& s, const AttentionHeads& h, const GpuSpec& gpu, Fidelity fidelity) {
  AttentionHeads whole = h;
  whole.window = 0;
  Cost cost = work_of(s, whole);
  const Chip chip = attention::chip_of(gpu, h.compute);
  cost.bytes += 4 * Bytes(s.batch * h.heads * s.query_len * s.mean_context * 2);
  if (fidelity == Fidelity::kIdeal) return roofline(cost.flops, cost.bytes, chip.peak, chip.bandwidth);
  const Seconds memory = cost.bytes / (chip.bandwidth * 0.85), products = cost.flops / (chip.peak * 0.8);
  cost.time = 3 * attention::kQueuedLaunch + std::max(memory, products);
  cost.bound = products > memory ? Bound::kCompute : Bound::kMemory;
  return cost;
}

/// FlashAttention before FlashDecoding (Dao et al. 2023, "Flash-Decoding for long-context inference"): a block for each
/// sequence and key-value head, so that few sequences leave most SMs without work, and the longest context is walked by
/// one. An SM pulls at most 1.6 times its share of the bandwidth.
///   time = launch + max(bytes / (BW 0.85 min(1, 1.6 blocks / SMs)), longest context's bytes / (1.6 BW 0.85 / SMs))
Cost unsplit_decode(const DecodeShape& s, const AttentionHeads& h, const GpuSpec& gpu) {
  constexpr double kReached = 0.85, kShareOfOne = 1.6;
  Cost cost = work_of(s, h);
  const Chip chip = attention::chip_of(gpu, h.compute);
  const double blocks = s.batch * h.kv_heads;
  const BytesPerSecond one = chip.bandwidth * (kReached * kShareOfOne / chip.sms);
  const Seconds together = cost.bytes / std::min(chip.bandwidth * kReached, one * blocks);
  const double longest = attention::visible_keys(s.max_context, s.query_len, h.window);
  const Seconds alone = Bytes(longest * attention::cached_row_bytes(h) / h.kv_heads) / one;
  cost.time = attention::kQueuedLaunch + std::max(together, alone);
  cost.bound = Bound::kMemory;
  return cost;
}

}  // namespace

/// T = launch + (path^p + memory^p)^(1/p) + combine.
Cost attention_decode_with(const DecodeShape& shape, const AttentionHeads& heads, const DecodeParameters& p,
                           const GpuSpec& gpu, KernelFamily family, Timing timing) {
  const Dtype products = attention::product_dtype(gpu, family, heads.compute, heads.kv);
  const Chip chip = attention::chip_of(gpu, products);
  Cost cost = work_of(shape, heads);
  const DecodeTime time = dispatch(call_of(shape, heads, products == Dtype::kFp8), p, chip, gpu, family);
  const Seconds memory = memory_time(time.reads * cost.bytes, p, chip, timing, time.reused);
  const Seconds launch = attention::launch_in(timing, time.launch);
  const double values = shape.batch * attention::visible_keys(shape.mean_context, shape.query_len, heads.window) *
                        (heads.head_dim + heads.value_dim);
  const Seconds path = time.path + attention::unpacking_time(values * heads.kv_heads, heads.kv, gpu) +
                       attention::scalar_fp8_time(values * heads.heads, time.fp8_operations, heads.kv, gpu);
  cost.time = launch + attention::overlapped(path, memory, time.overlap) + time.combine;
  if (attention::falls_back_on_triton(gpu, family, heads.head_dim)) {
    cost.time = std::max(cost.time, launch + cost.bytes / (chip.bandwidth * attention::kTritonBandwidth));
  }
  const bool idle = path > memory && !time.filled;
  cost.bound = idle || launch + time.combine > std::max(path, memory) ? Bound::kLatency
               : path > memory                                        ? Bound::kCompute
                                                                      : Bound::kMemory;
  return cost;
}

Cost attention_decode(const DecodeShape& shape, const AttentionHeads& heads, const Machine& machine) {
  SIM_CHECK(shape.batch > 0 && shape.query_len >= 1 && shape.mean_context >= shape.query_len, "an empty decode step");
  SIM_CHECK(heads.heads > 0 && heads.kv_heads > 0, "attention without heads");
  const GpuSpec& gpu = *machine.gpu;
  if (heads.kernel == AttentionKernel::kNaive) return naive_decode(shape, heads, gpu, machine.fidelity);
  if (machine.fidelity == Fidelity::kIdeal) {
    const Chip chip = attention::chip_of(gpu, heads.compute);
    const Cost work = work_of(shape, heads);
    return roofline(work.flops, work.bytes, chip.peak, chip.bandwidth);
  }
  const KernelFamily family = attention::family_of(machine);
  const auto* measured = attention::measured(machine.efficiency, &Efficiency::attention_decode, heads.kv);
  const DecodeParameters& constants = measured != nullptr ? *measured : attention_decode_prior(gpu, family, heads.kv);
  const Cost split = attention_decode_with(shape, heads, constants, gpu, family, machine.timing);
  if (heads.kernel != AttentionKernel::kUnsplit) return split;
  const Cost unsplit = unsplit_decode(shape, heads, gpu);
  return unsplit.time > split.time ? unsplit : split;
}

}  // namespace roofcast
