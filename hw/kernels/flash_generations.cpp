#include "hw/kernels/flash_generations.h"

#include "hw/kernels/attention_math.h"

namespace roofcast {
namespace {

using attention::Chip;

constexpr double kSoftmaxOperations = 4;      ///< per score, besides its exponential
constexpr double kSharedBytesPerClock = 128;  ///< per SM (CUDA C++ programming guide, shared memory: 32 banks of 4 B)
constexpr double kUsualClock = 1.7e9;         ///< for a GPU with an unknown clock
constexpr double kReachedProducts = 0.8, kReachedBandwidth = 0.85;  ///< as for naive attention
/// mma.sync reaches about two thirds of the peak of Hopper's matrix units (pytorch.org/blog/flashattention-3).
constexpr double kNarrowUnits = 2.0 / 3.0;
constexpr double kHidden = 4;  ///< exponent for two resources that overlap almost fully (docs/equations-attention.md)

/// Keys per block: 128 x 128 tiles; from FlashAttention-2 on, half of the keys for heads wider than 64. FlashAttention
/// 1 processes 16 query rows against 256 or 128 keys (FMHA_kernel_traits of its fmha_fwd_hdim*.cu).
double keys_of(const FlashGeneration& g, double head_dim) {
  if (g.outputs_in_memory) return head_dim <= 64 ? 256 : 128;
  return g.wide_units || head_dim <= 64 ? 128 : 64;
}

struct Work {
  double pairs = 0;  ///< per head
  Cost cost;
};

Work work_of(const FlashGeneration& g, const PrefillShape& s, const AttentionHeads& h) {
  const double context = s.context_before + s.query_len, dims = h.head_dim + h.value_dim;
  Work work{.pairs = attention::visible_pairs(s.context_before, s.query_len, h.window), .cost = {}};
  const double keys = attention::visible_keys(context, s.query_len, h.window);
  work.cost.flops = Flops(s.batch * h.heads * work.pairs * 2 * dims);
  const double cached = keys * attention::cached_row_bytes(h);
  double rows = s.query_len * h.heads * dims * 2;
  if (g.outputs_in_memory) {
    const double visits = std::max(s.query_len, work.pairs / keys_of(g, h.head_dim));
    rows = h.heads * visits * (2 * h.head_dim + 2 * 4 * h.value_dim + 2 * 2 * 4);
  }
  work.cost.bytes = Bytes(s.batch * (cached + rows));
  return work;
}

/// The time of a (query, key) pair on one SM.
Seconds pair_time(const FlashGeneration& g, const AttentionHeads& h, const GpuSpec& gpu, const Chip& chip) {
  const double clock = gpu.boost_clock > PerSecond{} ? gpu.boost_clock.base() : kUsualClock;
  const bool narrow = !g.wide_units && gpu.architecture == Architecture::kHopper;
  const Seconds products =
      Flops(2 * (h.head_dim + h.value_dim)) / (chip.per_sm() * kReachedProducts * (narrow ? kNarrowUnits : 1.0));
  const double operations = gpu.peak(Dtype::kFp32).base() / 2 / chip.sms;  // a multiply-add is one operation
  const double block = keys_of(g, h.head_dim);
  const Seconds softmax(1 / (gpu.exponentials_per_clock * clock) +
                        (kSoftmaxOperations + g.rescaling * h.value_dim / block) / operations);
  const Seconds sums(8 * g.shared_sums * h.value_dim / block / (kSharedBytesPerClock * clock));
  return g.hides_softmax ? attention::overlapped(products, softmax + sums, kHidden) : products + softmax + sums;
}

constexpr FlashGeneration kGeneration1{.name = "flash1",
                                       .query_rows = 0,
                                       .rescaling = 3,
                                       .shared_sums = 4,
                                       .outputs_in_memory = true,
                                       .hides_softmax = false,
                                       .wide_units = false,
                                       .splits_context = false,
                                       .most_head_dim = 128};
constexpr FlashGeneration kGeneration2{.name = "flash2",
                                       .query_rows = 128,
                                       .rescaling = 1,
                                       .shared_sums = 0,
                                       .outputs_in_memory = false,
                                       .hides_softmax = false,
                                       .wide_units = false,
                                       .splits_context = false,
                                       .most_head_dim = 256};
constexpr FlashGeneration kGeneration3{.name = "flash3",
                                       .query_rows = 128,
                                       .rescaling = 1,
                                       .shared_sums = 0,
                                       .outputs_in_memory = false,
                                       .hides_softmax = true,
                                       .wide_units = true,
                                       .splits_context = true,
                                       .most_head_dim = 256};

}  // namespace

const FlashGeneration* generation_of(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::kFlash1:
      return &kGeneration1;
    case AttentionKernel::kFlash2:
      return &kGeneration2;
    case AttentionKernel::kFlash3:
      return &kGeneration3;
    case AttentionKernel::kFlash:
    case AttentionKernel::kNaive:
    case AttentionKernel::kSplit:
    case AttentionKernel::kUnsplit:
      break;
  }
  return nullptr;
}

std::optional<std::string_view> cannot_run(const FlashGeneration& g, const GpuSpec& gpu) {
  const Architecture a = gpu.architecture;
  if (g.wide_units) {
    if (a != Architecture::kHopper) return "is written for Hopper's wgmma and TMA (arXiv:2407.08608)";
    return std::nullopt;
  }
  const bool ampere = a == Architecture::kAmpere || a == Architecture::kAda || a == Architecture::kHopper ||
                      a == Architecture::kBlackwellGeforce;
  if (ampere || (g.outputs_in_memory && a == Architecture::kTuring)) return std::nullopt;
  if (a == Architecture::kBlackwell) return "uses mma.sync, whose rate on this GPU is not published";
  return g.outputs_in_memory ? "is for NVIDIA GPUs from Turing on" : "is for NVIDIA GPUs from Ampere on";
}

Cost generation_prefill(const FlashGeneration& g, const PrefillShape& s, const AttentionHeads& h,
                        const Machine& machine) {
  const GpuSpec& gpu = *machine.gpu;
  const bool fp8 = g.wide_units && attention::multiplies_fp8(gpu, h.compute, h.kv);
  const Chip chip = attention::chip_of(gpu, fp8 ? Dtype::kFp8 : Dtype::kBf16);
  Work work = work_of(g, s, h);
  Cost& cost = work.cost;
  if (machine.fidelity == Fidelity::kIdeal) return roofline(cost.flops, cost.bytes, chip.peak, chip.bandwidth);
  const Seconds pair = pair_time(g, h, gpu, chip);
  const double units = s.batch * h.heads;
  const double tiles = g.query_rows > 0 ? attention::ceil_div(s.query_len, g.query_rows) : 1;
  const double longest =
      g.query_rows > 0 ? std::min(work.pairs, g.query_rows * attention::visible_keys(s.context_before + s.query_len,
                                                                                     g.query_rows, h.window))
                       : work.pairs;
  // Thread blocks go to SMs as these become free: tiles of unequal length fill them evenly, equal heads run in waves.
  const Seconds together = units * work.pairs / chip.sms * pair;
  const Seconds busy =
      tiles > 1 ? std::max(together, longest * pair) : attention::ceil_div(units, chip.sms) * work.pairs * pair;
  const Seconds memory = cost.bytes / (chip.bandwidth * kReachedBandwidth);
  cost.time = attention::kQueuedLaunch + std::max(busy, memory);
  cost.bound = busy > memory ? Bound::kCompute : Bound::kMemory;
  return cost;
}

}  // namespace roofcast
