#include "hw/kernels/latent_attention.h"

#include "base/error.h"
#include "hw/efficiency.h"
#include "hw/kernel_rules.h"
#include "hw/kernels/attention_math.h"
#include "hw/kernels/idle_sms.h"
#include "hw/kernels/latent/latent_kernel.h"

namespace roofcast {
namespace {

using attention::ceil_div;
using attention::Chip;
using attention::LatentDecodeKernel;
using attention::LatentDecodeParameters;
using attention::LatentDecodeParts;
using attention::LatentPrefillKernel;
using attention::LatentPrefillParameters;
using attention::LatentPrefillParts;

/// Bytes of one cached token. GPUs without fp8 units keep 16-bit latents even if fp8 is requested: no kernel supports
/// it.
double row_bytes(const LatentHeads& h, const GpuSpec& gpu) {
  const Dtype kv = gpu.peak(Dtype::kFp8) > FlopsPerSecond{} ? h.kv : Dtype::kBf16;
  return h.cache_bytes_per_token > 0 ? h.cache_bytes_per_token : cached_bytes(kv, h.latent_dim + h.rope_dim);
}

/// flops = 2 h (2 latent + rope) per visible pair; bytes = cache once for all heads + q (latent + rope) and output
/// (latent) of every head in 16 bit.
Cost decode_work(const DecodeShape& s, const LatentHeads& h, double bytes_a_token) {
  const double dims = 2 * h.latent_dim + h.rope_dim;
  const double pairs = attention::visible_pairs(s.mean_context - s.query_len, s.query_len, 0);
  Cost cost;
  cost.flops = Flops(2 * s.batch * h.heads * pairs * dims);
  cost.bytes = Bytes(s.batch * (s.mean_context * bytes_a_token + 2 * h.heads * s.query_len * dims));
  return cost;
}

/// For expanded heads: every head has its own k and v, in 16 bit.
Cost prefill_work(const PrefillShape& s, const LatentHeads& h) {
  const double dims = h.qk_dim + h.value_dim, context = s.context_before + s.query_len;
  Cost cost;
  cost.flops = Flops(2 * s.batch * h.heads * attention::visible_pairs(s.context_before, s.query_len, 0) * dims);
  cost.bytes = Bytes(2 * s.batch * h.heads * dims * (context + s.query_len));
  return cost;
}

attention::PrefillTiling latent_tiling(const PrefillShape& s, const LatentHeads& h, const LatentPrefillKernel& kernel) {
  attention::PrefillTiling t;
  t.tile_rows = kernel.tile_rows(), t.tile_keys = kernel.tile_keys();
  t.units = s.batch * h.heads;
  t.tiles = ceil_div(s.query_len, t.tile_rows);
  t.positions = t.tile_rows;
  t.before = s.context_before, t.queries = s.query_len;
  return t;
}

CallTraits traits_of(const LatentHeads& heads, const GpuSpec& gpu) {
  CallTraits traits(gpu);
  traits.products_bits = attention::multiplies_fp8(gpu, heads.compute, heads.kv) ? 8 : 16;
  traits.cache_bits = element_bits(heads.kv);
  return traits;
}

}  // namespace

const LatentPrefillKernel& latent_prefill_kernel(const LatentHeads& heads, const GpuSpec& gpu,
                                                 const KernelRules& rules) {
  return static_cast<const LatentPrefillKernel&>(rules.pick(KernelKind::kLatentPrefill, traits_of(heads, gpu)));
}

const LatentDecodeKernel& latent_decode_kernel(const LatentHeads& heads, const GpuSpec& gpu, const KernelRules& rules) {
  return static_cast<const LatentDecodeKernel&>(rules.pick(KernelKind::kLatentDecode, traits_of(heads, gpu)));
}

double absorbed_queries(const GpuSpec& gpu, Dtype kv, const KernelRules& rules) {
  return latent_decode_kernel({.kv = kv}, gpu, rules).absorbed_queries();
}

bool runs_as_decode(const PrefillShape& shape, const LatentHeads& heads, const GpuSpec& gpu, const KernelRules& rules) {
  return shape.query_len <= latent_decode_kernel(heads, gpu, rules).absorbed_queries();
}

LatentDecodeParts attention::latent_decode_parts(const DecodeShape& shape, const LatentHeads& heads,
                                                 const LatentDecodeKernel& kernel, const ConstantsBlock& constants,
                                                 const GpuSpec& gpu) {
  const LatentDecodeParameters& p = LatentDecodeKernel::in(constants)->value;
  const Chip chip = chip_of(gpu, kernel.multiplies_fp8() ? narrow_products(heads, gpu) : Dtype::kBf16);
  const double token = row_bytes(heads, gpu);
  const Cost work = decode_work(shape, heads, token);
  const Bytes again(shape.batch * shape.mean_context * token * kernel.read_again(shape, heads, p));
  const Bytes read = work.bytes + again;
  const double launch_us = p.launch_us + p.launch_heads_us * heads.heads / 128 + shape.batch * p.sequence_ns * 1e-3;
  return {.work = work,
          .chip = chip,
          .launch = launch_us * kMicrosecond,
          .path = kernel.path(shape, heads, p, chip),
          .read = read,
          .memory_rate = chip.bandwidth * p.bandwidth_fraction,
          .overlap = p.overlap};
}

Cost LatentDecodeParts::total(Seconds launch_there, Seconds memory) const {
  Cost cost = work;
  const Seconds body = attention::overlapped(path.path, memory, overlap) + path.combine;
  cost.time = launch_there + body;
  cost.bound = launch_there + path.combine > std::max(path.path, memory) ? Bound::kLatency
               : path.path > memory                                      ? Bound::kCompute
                                                                         : Bound::kMemory;
  return cost;
}

Cost latent_decode_with(const DecodeShape& shape, const LatentHeads& heads, const LatentDecodeKernel& kernel,
                        const ConstantsBlock& constants, const GpuSpec& gpu) {
  const LatentDecodeParts parts = attention::latent_decode_parts(shape, heads, kernel, constants, gpu);
  return parts.total(attention::queued_launch(parts.launch), parts.read / parts.memory_rate);
}

Cost latent_decode(const DecodeShape& shape, const LatentHeads& heads, const Machine& machine) {
  SIM_CHECK(shape.batch > 0 && shape.query_len >= 1 && shape.mean_context >= shape.query_len, "an empty decode step");
  SIM_CHECK(heads.heads > 0, "attention without heads");
  const GpuSpec& gpu = *machine.gpu;
  if (machine.fidelity == Fidelity::kIdeal) {
    const Chip chip = attention::chip_of(gpu, heads.compute);
    const Cost work = decode_work(shape, heads, row_bytes(heads, gpu));
    return roofline(work.flops, work.bytes, chip.peak, chip.bandwidth);
  }
  const Efficiency& efficiency = efficiency_of(machine);
  const LatentDecodeKernel& kernel = latent_decode_kernel(heads, gpu, efficiency.rules());
  const ConstantsBlock constants = efficiency.constants(kernel, heads.kv, gpu);
  return with_sms_to_spare(
      constants, gpu, [&](const GpuSpec& used) { return latent_decode_with(shape, heads, kernel, constants, used); });
}

/// The equations of attention_prefill, without grouping.
LatentPrefillParts attention::latent_prefill_parts(const PrefillShape& shape, const LatentHeads& heads,
                                                   const LatentPrefillKernel& kernel, const ConstantsBlock& constants,
                                                   const GpuSpec& gpu) {
  const LatentPrefillParameters& p = LatentPrefillKernel::in(constants)->value;
  const LatentPrefillParameters& measured = LatentPrefillKernel::in(as_measured(constants))->value;
  const Dtype narrow = kernel.format(heads, gpu);
  const Chip chip = attention::chip_of(gpu, kernel.products(heads, gpu));
  const double dims = heads.qk_dim + heads.value_dim, tokens = shape.batch * shape.query_len;
  attention::PrefillTileCosts costs;
  costs.score = Flops(2 * dims) / (chip.per_sm() * p.compute_fraction);
  costs.tile = p.tile_us * kMicrosecond;
  costs.imbalance = p.imbalance, costs.lone_slowdown = p.lone_slowdown;
  const Cost work = prefill_work(shape, heads);
  const Bytes written(tokens * heads.heads * dims * (2 + (narrow == Dtype::kFp8 ? 1 : 2)));
  return {
      .work = work,
      .launch = p.launch_us * kMicrosecond,
      .tiles = prefill_makespan(latent_tiling(shape, heads, kernel), costs, chip.sms),
      .memory = work.bytes / reading_rate(work.bytes, chip, p.bandwidth_fraction, measured.bandwidth_fraction),
      .write = written / reading_rate(written, chip, p.write_bandwidth_fraction, measured.write_bandwidth_fraction) +
               tokens * p.token_ns * 1e-3 * kMicrosecond,
      .overlap = p.overlap};
}

Cost LatentPrefillParts::total(Seconds launch_there) const {
  Cost cost = work;
  const Seconds body = attention::overlapped(tiles, memory, overlap) + write;
  cost.time = launch_there + body;
  cost.bound = launch_there > tiles + memory ? Bound::kLatency
               : tiles > memory + write      ? Bound::kCompute
                                             : Bound::kMemory;
  return cost;
}

Cost latent_prefill_with(const PrefillShape& shape, const LatentHeads& heads, const LatentPrefillKernel& kernel,
                         const ConstantsBlock& constants, const GpuSpec& gpu) {
  const LatentPrefillParts parts = attention::latent_prefill_parts(shape, heads, kernel, constants, gpu);
  return parts.total(attention::queued_launch(parts.launch));
}

/// time = max(latent_decode's, 2 tokens padded heads (2 latent + rope) visible / (share x peak)). The rates are from
/// FlashMLA's README (MIT): 640 TFLOP/s on an H800 and 1450 on a B200 in prefill, 410 and 350 in decode. Padding:
/// sglang/srt/layers/attention/nsa_backend.py, _forward_flashmla_sparse.
Cost latent_sparse(const DecodeShape& shape, const LatentHeads& heads, FlashMla kernel, const Machine& machine) {
  Cost cost = latent_decode(shape, heads, machine);
  const Architecture architecture = machine.gpu->architecture;
  const bool hopper = architecture == Architecture::kHopper, prompt = kernel == FlashMla::kPrefill;
  if (machine.fidelity == Fidelity::kIdeal || !(hopper || architecture == Architecture::kBlackwell)) return cost;
  const double share = prompt ? 0.64 : hopper ? 0.41 : 0.155, tile = prompt && !hopper ? 128.0 : 64.0;
  const double padded = std::ceil(heads.heads / tile) * tile, dims = 2 * heads.latent_dim + heads.rope_dim;
  const Flops work(2 * shape.batch * shape.query_len * padded * shape.mean_context * dims);
  const Seconds products = work / (attention::chip_of(*machine.gpu, Dtype::kBf16).peak * share);
  if (products > cost.time) cost.bound = Bound::kCompute;
  cost.time = std::max(cost.time, products);
  return cost;
}

Cost latent_prefill(const PrefillShape& shape, const LatentHeads& heads, const Machine& machine) {
  SIM_CHECK(shape.batch > 0 && shape.query_len > 0 && shape.context_before >= 0, "an empty prefill chunk");
  SIM_CHECK(heads.heads > 0, "attention without heads");
  const GpuSpec& gpu = *machine.gpu;
  if (machine.fidelity == Fidelity::kIdeal) {
    const Chip chip = attention::chip_of(gpu, heads.compute);
    const Cost work = prefill_work(shape, heads);
    return roofline(work.flops, work.bytes, chip.peak, chip.bandwidth);
  }
  const Efficiency& efficiency = efficiency_of(machine);
  if (runs_as_decode(shape, heads, gpu, efficiency.rules())) return latent_decode(as_decode(shape), heads, machine);
  const LatentPrefillKernel& kernel = latent_prefill_kernel(heads, gpu, efficiency.rules());
  const Dtype format = kernel.format(heads, gpu);
  const ConstantsBlock constants = efficiency.constants(kernel, format, gpu);
  return with_sms_to_spare(
      constants, gpu, [&](const GpuSpec& used) { return latent_prefill_with(shape, heads, kernel, constants, used); });
}

}  // namespace roofcast
