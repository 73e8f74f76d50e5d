#include <array>

#include "base/error.h"
#include "hw/efficiency.h"
#include "hw/kernel_rules.h"
#include "hw/kernels/attention_math.h"
#include "hw/kernels/flash_generations.h"
#include "hw/kernels/idle_sms.h"
#include "hw/kernels/prefill/prefill_kernel.h"

namespace roofcast {
namespace {

using attention::Chip;
using attention::PrefillKernel;
using attention::PrefillParameters;
using attention::PrefillParts;
using attention::PrefillTraits;
using attention::reading_rate;

/// Work and traffic of any implementation. The naive one computes the whole N x N matrix and moves it four times:
/// scores written, read by the softmax, written, and read by the second GEMM (Dao et al., 2022, arXiv:2205.14135).
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

/// Three kernels in sequence: Q K^T, softmax, P V. A large batched GEMM reaches about 0.8 of the peak, a streaming
/// kernel about 0.85 of the bandwidth (docs/equations-gemm.md).
Seconds naive_time(const PrefillShape& s, const AttentionHeads& h, const Cost& work, const Chip& chip) {
  const Bytes matrix(s.batch * h.heads * s.query_len * (s.context_before + s.query_len) * 2);
  const Bytes operands = (work.bytes - 4 * matrix) / 2;
  const Seconds product = work.flops / 2 / (chip.peak * 0.8);
  const BytesPerSecond bandwidth = chip.bandwidth * 0.85;
  return 3 * attention::kQueuedLaunch + 2 * std::max(product, (operands + matrix) / bandwidth) + 2 * matrix / bandwidth;
}

attention::PrefillTiling tiling_of(const PrefillShape& s, const AttentionHeads& h, const PrefillTraits& traits) {
  attention::PrefillTiling t;
  t.before = s.context_before, t.queries = s.query_len, t.window = h.window, t.head_dim = h.head_dim;
  t.units = s.batch * (traits.packs_groups ? h.kv_heads : h.heads);
  t.tile_rows = traits.tile_rows, t.tile_keys = traits.tile_keys;
  t.splits_keys = traits.splits_keys, t.persistent = traits.persistent;
  const double packed = traits.packs_groups ? h.heads / h.kv_heads : 1.0;
  t.positions = t.tile_rows / packed;
  t.tiles = attention::ceil_div(s.query_len * packed, t.tile_rows);
  return t;
}

/// The cache write: every new token's k and v are read in 16 bit and written in the cache's format. vLLM's kernel
/// starts a thread block per token with one thread per value of k, at most 512 (reshape_and_cache_flash), which is
/// limited by the threads of an SM. TensorRT-LLM's kernel also applies RoPE to the queries and rewrites them.
Seconds write_time(const PrefillShape& s, const AttentionHeads& h, const PrefillParameters& p,
                   const PrefillParameters& measured, const Chip& chip, bool rewrites_queries) {
  const double dims = h.head_dim + h.value_dim;
  const double bytes =
      h.kv_heads * dims * 2 + attention::cached_row_bytes(h) + (rewrites_queries ? 2 * h.heads * dims : 0);
  const double tokens = s.batch * s.query_len;
  const Bytes moved(tokens * bytes);
  const double token_ns = p.token_ns + p.token_threads_ns * std::min(h.kv_heads * h.head_dim, 512.0) / 512;
  return moved / reading_rate(moved, chip, p.write_bandwidth_fraction, measured.write_bandwidth_fraction) +
         tokens * token_ns * 1e-3 * kMicrosecond;
}

}  // namespace

const PrefillKernel& prefill_kernel(const PrefillShape& shape, const AttentionHeads& heads, const GpuSpec& gpu,
                                    const KernelRules& rules) {
  return static_cast<const PrefillKernel&>(
      rules.pick(KernelKind::kAttentionPrefill, attention::call_traits(heads, shape.query_len, gpu)));
}

bool runs_as_decode(const PrefillShape& shape, const AttentionHeads& heads, const KernelRules& rules) {
  if (rules.decode_rows() <= 0) return false;
  const double rows = shape.query_len * heads.heads / heads.kv_heads;
  return shape.query_len == 1 || (rows <= rules.decode_rows() && shape.context_before > 0);
}

DecodeShape as_decode(const PrefillShape& shape) {
  const double context = shape.context_before + shape.query_len;
  return {shape.batch, context, context, shape.query_len};
}

Dtype prefill_products(const AttentionHeads& heads, const PrefillKernel& kernel, const GpuSpec& gpu) {
  const bool narrow = !kernel.wants_fp8_queries() || element_bits(heads.compute) <= 8;
  const bool fp8 = narrow && kernel.multiplies_fp8() && attention::multiplies_fp8(gpu, heads.compute, heads.kv);
  return fp8 ? Dtype::kFp8 : Dtype::kBf16;
}

/// e = score_ns + 2 (d_k + d_v) / (compute_fraction F / SMs): the exponentials (16 per clock and SM) do not overlap
/// with the GEMMs.
PrefillParts attention::prefill_parts(const PrefillShape& shape, const AttentionHeads& heads,
                                      const PrefillKernel& kernel, const ConstantsBlock& constants,
                                      const GpuSpec& gpu) {
  const PrefillParameters& p = kernel.parameters(constants);
  const PrefillParameters& measured = kernel.parameters(as_measured(constants));
  const Dtype products = prefill_products(heads, kernel, gpu);
  const Chip chip = attention::chip_of(gpu, products);
  const bool fp8 = products == Dtype::kFp8;
  const PrefillTraits traits = kernel.traits(heads.head_dim, fp8);
  const double dims = heads.head_dim + heads.value_dim, wide = fp8 && heads.head_dim >= 256 ? p.wide_head_penalty : 0.0;
  attention::PrefillTileCosts costs;
  costs.score =
      (p.score_ns * 1e-3 * kMicrosecond + Flops(2 * dims) / (chip.per_sm() * p.compute_fraction)) * (1 + wide);
  costs.tile = p.tile_us * kMicrosecond;
  costs.imbalance = p.imbalance, costs.lone_slowdown = p.lone_slowdown, costs.window_blocks = p.window_blocks;
  costs.combine = p.combine_us * kMicrosecond;
  const Cost work = work_of(shape, heads);
  const Bytes traffic = work.bytes - Bytes(fp8 ? shape.batch * shape.query_len * heads.heads * heads.head_dim : 0.0);
  PrefillParts parts{.work = work,
                     .launch = (p.launch_us + p.launch_head_dim_us * heads.head_dim / 128) * kMicrosecond,
                     .tiles = prefill_makespan(tiling_of(shape, heads, traits), costs, chip.sms),
                     .memory = traffic / reading_rate(traffic, chip, p.bandwidth_fraction, measured.bandwidth_fraction),
                     .write = write_time(shape, heads, p, measured, chip, traits.rewrites_queries),
                     .overlap = p.overlap,
                     .least = {}};
  if (traits.most_compute < 1.0) parts.least = work.flops / (chip_of(gpu, Dtype::kBf16).peak * traits.most_compute);
  return parts;
}

Cost PrefillParts::total(Seconds launch_there) const {
  Cost cost = work;
  cost.time = launch_there + attention::overlapped(tiles, memory, overlap) + write;
  if (least > Seconds{}) cost.time = std::max(cost.time, launch_there + least);
  cost.bound = launch_there > tiles + memory ? Bound::kLatency
               : tiles > memory + write      ? Bound::kCompute
                                             : Bound::kMemory;
  return cost;
}

Cost attention_prefill_with(const PrefillShape& shape, const AttentionHeads& heads, const PrefillKernel& kernel,
                            const ConstantsBlock& constants, const GpuSpec& gpu) {
  const PrefillParts parts = attention::prefill_parts(shape, heads, kernel, constants, gpu);
  return parts.total(attention::queued_launch(parts.launch));
}

Cost attention_prefill(const PrefillShape& shape, const AttentionHeads& heads, const Machine& machine) {
  SIM_CHECK(shape.batch > 0 && shape.query_len > 0 && shape.context_before >= 0, "an empty prefill chunk");
  SIM_CHECK(heads.heads > 0 && heads.kv_heads > 0, "attention without heads");
  const GpuSpec& gpu = *machine.gpu;
  if (const FlashGeneration* generation = generation_of(heads.kernel))
    return generation_prefill(*generation, shape, heads, machine);
  if (machine.fidelity == Fidelity::kIdeal || heads.kernel == AttentionKernel::kNaive) {
    const Chip chip = attention::chip_of(gpu, heads.compute);
    Cost cost = work_of(shape, heads);
    if (machine.fidelity == Fidelity::kIdeal) return roofline(cost.flops, cost.bytes, chip.peak, chip.bandwidth);
    cost.time = naive_time(shape, heads, cost, chip);
    return cost;
  }
  const Efficiency& efficiency = efficiency_of(machine);
  if (runs_as_decode(shape, heads, efficiency.rules())) return attention_decode(as_decode(shape), heads, machine);
  const PrefillKernel& kernel = prefill_kernel(shape, heads, gpu, efficiency.rules());
  const ConstantsBlock constants = efficiency.constants(kernel, prefill_products(heads, kernel, gpu), gpu);
  return with_sms_to_spare(constants, gpu, [&](const GpuSpec& used) {
    return attention_prefill_with(shape, heads, kernel, constants, used);
  });
}

}  // namespace roofcast
