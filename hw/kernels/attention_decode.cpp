#include "base/error.h"
#include "hw/efficiency.h"
#include "hw/kernel_rules.h"
#include "hw/kernels/attention_math.h"
#include "hw/kernels/decode/decode_kernel.h"
#include "hw/kernels/flash_generations.h"
#include "hw/kernels/idle_sms.h"

namespace roofcast {
namespace {

using attention::Chip;
using attention::DecodeCall;
using attention::DecodeKernel;
using attention::DecodeParts;

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
          .windowed = h.window > 0,
          .has_window = h.window > 0 && h.window < longest,
          .fp8 = fp8,
          .query_len = s.query_len,
          .batch = s.batch,
          .kv_heads = h.kv_heads};
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

/// Naive kernels of a decode step: two GEMMs over the whole cache and a softmax; the scores are moved four times.
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

/// FlashAttention before FlashDecoding (Dao et al. 2023, "Flash-Decoding for long-context inference"): one thread block
/// per sequence and key-value head. With few sequences most SMs are idle, and the longest context is read by a single
/// block. An SM draws at most 1.6 times its share of the bandwidth.
///   time = launch + max(bytes / (BW 0.85 min(1, 1.6 blocks / SMs)), longest context's bytes / (1.6 BW 0.85 / SMs))
/// At kIdeal: without the launch, and with the full bandwidth in place of 0.85 of it.
Cost unsplit_decode(const DecodeShape& s, const AttentionHeads& h, const GpuSpec& gpu, Fidelity fidelity) {
  const bool ideal = fidelity == Fidelity::kIdeal;
  const double reached = ideal ? 1.0 : 0.85;
  constexpr double kShareOfOne = 1.6;
  Cost cost = work_of(s, h);
  const Chip chip = attention::chip_of(gpu, h.compute);
  const double blocks = s.batch * h.kv_heads;
  const BytesPerSecond one = chip.bandwidth * (reached * kShareOfOne / chip.sms);
  const Seconds together = cost.bytes / std::min(chip.bandwidth * reached, one * blocks);
  const double longest = attention::visible_keys(s.max_context, s.query_len, h.window);
  const Seconds alone = Bytes(longest * attention::cached_row_bytes(h) / h.kv_heads) / one;
  cost.time = (ideal ? Seconds(0) : attention::kQueuedLaunch) + std::max(together, alone);
  cost.bound = Bound::kMemory;
  return cost;
}

}  // namespace

const DecodeKernel& decode_kernel(const DecodeShape& shape, const AttentionHeads& heads, const GpuSpec& gpu,
                                  const KernelRules& rules) {
  const double units = shape.batch * heads.kv_heads, longest = std::max(shape.max_context, shape.mean_context);
  CallTraits traits = attention::call_traits(heads, shape.query_len, gpu);
  traits.shared_reads = heads.shared_reads;
  traits.blocks_per_sm = units * std::max(1.0, std::floor(longest / 128)) / gpu.sm_count;
  return static_cast<const DecodeKernel&>(rules.pick(KernelKind::kAttentionDecode, traits));
}

DecodeParts attention::decode_parts(const DecodeShape& shape, const AttentionHeads& heads, const DecodeKernel& kernel,
                                    const ConstantsBlock& constants, const GpuSpec& gpu) {
  const bool fp8 = kernel.multiplies_fp8() && multiplies_fp8(gpu, heads.compute, heads.kv);
  const Chip chip = chip_of(gpu, fp8 ? Dtype::kFp8 : Dtype::kBf16);
  DecodeParts parts{.work = work_of(shape, heads),
                    .chip = chip,
                    .time = kernel.time(call_of(shape, heads, fp8), constants, chip),
                    .read = {},
                    .memory_rate = chip.bandwidth * kernel.reads(constants).bandwidth_fraction};
  parts.read = parts.time.reads * parts.work.bytes;
  const double values = shape.batch * visible_keys(shape.mean_context, shape.query_len, heads.window) *
                        (heads.head_dim + heads.value_dim);
  parts.time.path = parts.time.path + unpacking_time(values * heads.kv_heads, heads.kv, gpu) +
                    scalar_fp8_time(values * heads.heads, parts.time.fp8_operations, heads.kv, gpu);
  return parts;
}

Cost DecodeParts::total(Seconds launch, Seconds memory) const {
  Cost cost = work;
  cost.time = launch + attention::overlapped(time.path, memory, time.overlap) + time.combine;
  if (time.most_bandwidth < 1.0)
    cost.time = std::max(cost.time, launch + cost.bytes / (chip.bandwidth * time.most_bandwidth));
  const bool idle = time.path > memory && !time.filled;
  cost.bound = idle || launch + time.combine > std::max(time.path, memory) ? Bound::kLatency
               : time.path > memory                                        ? Bound::kCompute
                                                                           : Bound::kMemory;
  return cost;
}

Cost attention_decode_with(const DecodeShape& shape, const AttentionHeads& heads, const DecodeKernel& kernel,
                           const ConstantsBlock& constants, const GpuSpec& gpu) {
  const DecodeParts parts = attention::decode_parts(shape, heads, kernel, constants, gpu);
  return parts.total(attention::queued_launch(parts.time.launch), parts.read / parts.memory_rate);
}

Cost attention_decode(const DecodeShape& shape, const AttentionHeads& heads, const Machine& machine) {
  SIM_CHECK(shape.batch > 0 && shape.query_len >= 1 && shape.mean_context >= shape.query_len, "an empty decode step");
  SIM_CHECK(heads.heads > 0 && heads.kv_heads > 0, "attention without heads");
  const GpuSpec& gpu = *machine.gpu;
  if (heads.kernel == AttentionKernel::kNaive) return naive_decode(shape, heads, gpu, machine.fidelity);
  const FlashGeneration* generation = generation_of(heads.kernel);
  const bool unsplit_kernel =
      generation != nullptr ? !generation->splits_context : heads.kernel == AttentionKernel::kUnsplit;
  const auto slower_of = [&](const Cost& split) {
    if (!unsplit_kernel) return split;
    const Cost unsplit = unsplit_decode(shape, heads, gpu, machine.fidelity);
    return unsplit.time > split.time ? unsplit : split;
  };
  if (machine.fidelity == Fidelity::kIdeal) {
    const Chip chip = attention::chip_of(gpu, heads.compute);
    const Cost work = work_of(shape, heads);
    return slower_of(roofline(work.flops, work.bytes, chip.peak, chip.bandwidth));
  }
  const Efficiency& efficiency = efficiency_of(machine);
  const DecodeKernel& kernel = decode_kernel(shape, heads, gpu, efficiency.rules());
  const ConstantsBlock constants = efficiency.constants(kernel, heads.kv, gpu);
  return slower_of(with_sms_to_spare(constants, gpu, [&](const GpuSpec& used) {
    const DecodeKernel& there = decode_kernel(shape, heads, used, efficiency.rules());  // depends on blocks per SM
    if (&there == &kernel) return attention_decode_with(shape, heads, kernel, constants, used);
    return attention_decode_with(shape, heads, there, efficiency.constants(there, heads.kv, gpu), used);
  }));
}

}  // namespace roofcast
