#include <array>

#include "base/error.h"
#include "hw/kernels/attention_math.h"

namespace roofcast {

std::span<const Parameter<PrefillParameters>> PrefillParameters::fields() {
  using P = PrefillParameters;
  using enum Transfer;
  static constexpr std::array<Parameter<P>, 15> kFields{{
      {"launch_us", &P::launch_us, 0.0, 60.0, kLaunch,
       "launch of the cache write, the attention kernel and its set-up"},
      {"launch_head_dim_us", &P::launch_head_dim_us, 0.0, 5.0, kCycles, "more of it for each 128 of head dimension"},
      {"tile_us", &P::tile_us, 0.0, 12.0, kCycles, "start and end of a tile: load the queries, store the output"},
      {"score_ns", &P::score_ns, 0.0, 0.1, kExponential, "exponential of one score on one SM"},
      {"compute_fraction", &P::compute_fraction, 0.1, 1.0, kKept, "of the datasheet peak, in the two products"},
      {"wide_head_penalty", &P::wide_head_penalty, 0.0, 1.0, kKept,
       "more time a score at a head dimension of 256, fp8"},
      {"imbalance", &P::imbalance, 1.0, 12.0, kKept, "1: the longest tile adds to the mean; large: the larger counts"},
      {"lone_slowdown", &P::lone_slowdown, 1.0, 3.0, kKept, "of a tile that is alone on its SM"},
      {"window_blocks", &P::window_blocks, 0.0, 5.0, kKept, "key blocks a tile pays for the borders of a window"},
      {"overlap", &P::overlap, 1.0, 8.0, kKept, "of tiles and memory; 1: they add, large: the larger counts"},
      {"bandwidth_fraction", &P::bandwidth_fraction, 0.1, 1.0, kMemoryShare,
       "of the datasheet bandwidth, reading q, k and v"},
      {"write_bandwidth_fraction", &P::write_bandwidth_fraction, 0.1, 1.0, kMemoryShare,
       "the same, in the write to the cache"},
      {"token_ns", &P::token_ns, 0.0, 6.0, kCycles, "of the cache write, which starts a block of threads a token"},
      {"token_threads_ns", &P::token_threads_ns, 0.0, 15.0, kCycles, "more of it for a block of 512 threads (vLLM)"},
      {"combine_us", &P::combine_us, 0.0, 10.0, kCycles, "merging partial outputs where the keys were split"},
  }};
  return kFields;
}

namespace {

using attention::Chip;
using attention::Library;

constexpr double kDecodeRows = 64;  ///< of a tile of the decode kernel

/// Work and traffic of any implementation; the naive one computes the whole N x N matrix and moves it four times
/// (scores written, read by the softmax, written, read by the second product; Dao et al., 2022, arXiv:2205.14135).
Cost work_of(const PrefillShape& s, const AttentionHeads& h) {
  const double context = s.context_before + s.query_len;
  const double dims = h.head_dim + h.value_dim;
  const bool naive = h.kernel == AttentionKernel::kNaive;
  const double matrix = s.query_len * context;
  const double pairs = naive ? matrix : attention::visible_pairs(s.context_before, s.query_len, h.window);
  const double keys = attention::visible_keys(context, s.query_len, h.window);
  Cost cost;
  cost.flops = Flops(s.batch * h.heads * pairs * 2 * dims);
  cost.bytes = Bytes(s.batch * (keys * attention::cached_row_bytes(h) + s.query_len * h.heads * dims * 2));
  if (naive) cost.bytes += Bytes(s.batch * h.heads * matrix * 4 * 2);
  return cost;
}

/// Three kernels one after another: Q K^T, softmax, P V. A large batched GEMM reaches about 0.8 of the peak and a
/// streaming kernel about 0.85 of the bandwidth (docs/equations-gemm.md).
Seconds naive_time(const PrefillShape& s, const AttentionHeads& h, const Cost& work, const Chip& chip) {
  const Bytes matrix(s.batch * h.heads * s.query_len * (s.context_before + s.query_len) * 2);
  const Bytes operands = (work.bytes - 4 * matrix) / 2;
  const Seconds product = work.flops / 2 / (chip.peak * 0.8);
  const BytesPerSecond bandwidth = chip.bandwidth * 0.85;
  return 3 * attention::kQueuedLaunch + 2 * std::max(product, (operands + matrix) / bandwidth) + 2 * matrix / bandwidth;
}

/// Tiles of each library, on Hopper others in fp8. FlashAttention-3 packs the query heads of a group into the rows of a
/// tile.
attention::PrefillTiling tiling_of(const PrefillShape& s, const AttentionHeads& h, Library library, bool hopper_fp8) {
  const double d = h.head_dim;
  attention::PrefillTiling t;
  t.before = s.context_before, t.queries = s.query_len, t.window = h.window, t.head_dim = d;
  t.units = s.batch * h.heads;
  switch (library) {
    case Library::kFa3:
      t.tile_rows = d <= 64 ? 192 : 128;
      t.tile_keys = hopper_fp8 ? (d > 192 ? 128 : 160) : d <= 128 ? 128 : d <= 192 ? 96 : 64;
      t.units = s.batch * h.kv_heads;
      t.splits_keys = t.persistent = true;
      break;
    case Library::kXqa:
      t.tile_rows = 64, t.tile_keys = hopper_fp8 ? 256 : 64;
      break;
    case Library::kFa2:
      t.tile_rows = 128, t.tile_keys = 64;
      break;
    case Library::kTrtllmGen:
      t.tile_rows = d <= 128 ? 256 : 128, t.tile_keys = 128;
      break;
  }
  const double packed = library == Library::kFa3 ? h.heads / h.kv_heads : 1.0;
  t.positions = t.tile_rows / packed;
  t.tiles = attention::ceil_div(s.query_len * packed, t.tile_rows);
  return t;
}

/// Cache write: every new token's k and v read in 16 bit and written in the cache's format. vLLM's kernel starts a
/// block a token, of a thread a value of k but 512 at most (reshape_and_cache_flash), and those threads are what an SM
/// runs out of. TensorRT-LLM's kernel also rotates and rewrites the queries.
Seconds write_time(const PrefillShape& s, const AttentionHeads& h, const PrefillParameters& p, const Chip& chip,
                   bool rewrites_queries) {
  const double dims = h.head_dim + h.value_dim;
  const double bytes =
      h.kv_heads * dims * 2 + attention::cached_row_bytes(h) + (rewrites_queries ? 2 * h.heads * dims : 0);
  const double tokens = s.batch * s.query_len;
  const double token_ns = p.token_ns + p.token_threads_ns * std::min(h.kv_heads * h.head_dim, 512.0) / 512;
  return Bytes(tokens * bytes) / attention::reading_rate(Bytes(tokens * bytes), chip, p.write_bandwidth_fraction) +
         tokens * token_ns * 1e-3 * kMicrosecond;
}

}  // namespace

bool is_other_kernel(const AttentionHeads& heads, const GpuSpec& gpu, KernelFamily family) {
  if (attention::falls_back_on_triton(gpu, family, heads.head_dim)) return true;
  if (family == KernelFamily::kVllm) return gpu.architecture == Architecture::kHopper && heads.head_dim > 256;
  return gpu.architecture == Architecture::kBlackwell &&
         (heads.head_dim > 256 || (heads.head_dim == 256 && heads.window > 0));
}

bool runs_as_decode(const PrefillShape& shape, const AttentionHeads& heads, KernelFamily family) {
  if (family != KernelFamily::kVllm) return false;
  const double rows = shape.query_len * heads.heads / heads.kv_heads;
  return shape.query_len == 1 || (rows <= kDecodeRows && shape.context_before > 0);
}

Dtype prefill_products(const AttentionHeads& heads, const GpuSpec& gpu, KernelFamily family) {
  return attention::product_dtype(gpu, family, heads.compute, heads.kv);
}

/// e = score_ns + 2 (d_k + d_v) / (compute_fraction F / SMs): the exponential unit (16 a clock and SM) is not hidden
/// behind the products. T = launch + (tiles^p + memory^p)^(1/p) + cache write.
Cost attention_prefill_with(const PrefillShape& shape, const AttentionHeads& heads, const PrefillParameters& p,
                            const GpuSpec& gpu, KernelFamily family, Timing timing) {
  const Library library = attention::library_of(gpu, family);
  const Dtype products = prefill_products(heads, gpu, family);
  const Chip chip = attention::chip_of(gpu, products);
  const bool fp8 = products == Dtype::kFp8;
  const double dims = heads.head_dim + heads.value_dim, wide = fp8 && heads.head_dim >= 256 ? p.wide_head_penalty : 0.0;
  attention::PrefillTileCosts costs;
  costs.score =
      (p.score_ns * 1e-3 * kMicrosecond + Flops(2 * dims) / (chip.per_sm() * p.compute_fraction)) * (1 + wide);
  costs.tile = p.tile_us * kMicrosecond;
  costs.imbalance = p.imbalance, costs.lone_slowdown = p.lone_slowdown, costs.window_blocks = p.window_blocks;
  costs.combine = p.combine_us * kMicrosecond;
  const Seconds tiles = attention::prefill_makespan(
      tiling_of(shape, heads, library, fp8 && gpu.architecture == Architecture::kHopper), costs, chip.sms);
  Cost cost = work_of(shape, heads);
  const Bytes traffic = cost.bytes - Bytes(fp8 ? shape.batch * shape.query_len * heads.heads * heads.head_dim : 0.0);
  const Seconds memory = traffic / attention::reading_rate(traffic, chip, p.bandwidth_fraction);
  const Seconds launch =
      attention::launch_in(timing, (p.launch_us + p.launch_head_dim_us * heads.head_dim / 128) * kMicrosecond);
  const Seconds write = write_time(shape, heads, p, chip, family == KernelFamily::kTrtllm);
  cost.time = launch + attention::overlapped(tiles, memory, p.overlap) + write;
  if (attention::falls_back_on_triton(gpu, family, heads.head_dim)) {
    const FlopsPerSecond slow = attention::chip_of(gpu, Dtype::kBf16).peak * attention::kTritonCompute;
    cost.time = std::max(cost.time, launch + cost.flops / slow);
  }
  cost.bound = launch > tiles + memory ? Bound::kLatency : tiles > memory + write ? Bound::kCompute : Bound::kMemory;
  return cost;
}

Cost attention_prefill(const PrefillShape& shape, const AttentionHeads& heads, const Machine& machine) {
  SIM_CHECK(shape.batch > 0 && shape.query_len > 0 && shape.context_before >= 0, "an empty prefill chunk");
  SIM_CHECK(heads.heads > 0 && heads.kv_heads > 0, "attention without heads");
  const GpuSpec& gpu = *machine.gpu;
  if (machine.fidelity == Fidelity::kIdeal || heads.kernel == AttentionKernel::kNaive) {
    const Chip chip = attention::chip_of(gpu, heads.compute);
    Cost cost = work_of(shape, heads);
    if (machine.fidelity == Fidelity::kIdeal) return roofline(cost.flops, cost.bytes, chip.peak, chip.bandwidth);
    cost.time = naive_time(shape, heads, cost, chip);
    return cost;
  }
  const KernelFamily family = attention::family_of(machine);
  if (runs_as_decode(shape, heads, family)) {
    const double context = shape.context_before + shape.query_len;
    return attention_decode({shape.batch, context, context, shape.query_len}, heads, machine);
  }
  const Dtype products = prefill_products(heads, gpu, family);
  if (const auto* p = attention::measured(machine.efficiency, &Efficiency::attention_prefill, products)) {
    return attention_prefill_with(shape, heads, *p, gpu, family, machine.timing);
  }
  const PrefillParameters p = attention_prefill_prior(gpu, family, products);
  return attention_prefill_with(shape, heads, p, gpu, family, machine.timing);
}

}  // namespace roofcast
