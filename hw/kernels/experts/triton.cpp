// Experts by Triton: vLLM's fused_moe, OpenAI's kernels for mxfp4, and the kernels on AMD GPUs in 2024.
// Facts: vLLM's sources (vllm/model_executor/layers/fused_moe) and the kernel column of the measured tables
// (docs/equations-moe.md#kernels).

#include <algorithm>

#include "hw/kernels/experts/experts_kernel.h"

namespace roofcast {
namespace {

using enum TileRule;
using enum ExpertRows;

/// vLLM's fused_moe.
struct Gathering : ExpertsParameters, GatheredRows {
  static std::span<const Parameter<Gathering>> fields();
};
/// The same with vLLM's default tiles for mma.sync.
struct Shipped : ExpertsParameters, GatheredRows, ShortRows {
  static std::span<const Parameter<Shipped>> fields();
};

template <class P>
constexpr std::array<Parameter<P>, 2> kGatheringFields{{
    {"gather_loss", &P::gather_loss, 0.0, 2.0, Transfer::kKept,
     "relative extra time of tiles that wait for rows gathered from memory (Triton)"},
    {"unaligned_slowdown", &P::unaligned_slowdown, 1.0, 10.0, Transfer::kKept,
     "slowdown of a GEMM whose inner dimension is not a multiple of 16 (Triton)"},
}};

std::span<const Parameter<Gathering>> Gathering::fields() {
  static constexpr auto kFields = joined(kExpertsFields<Gathering>, kGatheringFields<Gathering>);
  return kFields;
}
std::span<const Parameter<Shipped>> Shipped::fields() {
  using P = Shipped;
  static constexpr auto kFields = joined(
      kExpertsFields<P>, kGatheringFields<P>,
      std::array<Parameter<P>, 2>{{
          {"short_row_bandwidth", &P::short_row_bandwidth, 0.2, 1.0, Transfer::kKept,
           "share of the bandwidth if tiles read their weights in rows of 64 bytes (vLLM's default tiles on Ampere)"},
          {"memory_step_us", &P::memory_step_us, 0.0, 4.0, Transfer::kKept,
           "latency of one step of the inner dimension (vLLM's default tiles on Ampere)"},
      }});
  return kFields;
}

/// Rate per SM of GEMMs that Triton reads element by element, on an H100 or H200: 7.5 TFLOP/s over the slowdown of
/// 4.9-5.0 fitted there. They are bound by instructions, not by matrix units, which is assumed for other GPUs too.
constexpr double kUnalignedFlopsPerSm = 1.5e12;

template <class P>
class FusedMoe : public ExpertsKernelOf<P> {
 public:
  using ExpertsKernelOf<P>::ExpertsKernelOf;
  P prior(const GpuSpec& gpu, Dtype) const override {
    P p;
    const double per_sm = gpu.peak(Dtype::kBf16).base() / gpu.sm_count;
    p.unaligned_slowdown = std::clamp(per_sm / kUnalignedFlopsPerSm, 1.0, 10.0);
    return p;
  }

 private:
  /// Loads of single elements take instructions, and an SM issues the same number per cycle on every GPU. The faster
  /// the matrix units, the larger the slowdown. 1 means that it was measured without such loads. Within an architecture
  /// it does not grow: the factor also slows reads from memory, which a higher peak does not.
  void follow(P& p, const CarryOverCase& to) const override {
    const bool same = to.from.architecture == to.to.architecture;
    const double longer = same ? std::min(1.0, to.ratios.operations) : to.ratios.operations;
    if (p.unaligned_slowdown > 1.0) p.unaligned_slowdown = std::clamp(p.unaligned_slowdown * longer, 1.0, 10.0);
    follow_chip(p, to);
  }
};

class ShippedTiles final : public FusedMoe<Shipped> {
 public:
  using FusedMoe::FusedMoe;
  Shipped prior(const GpuSpec& gpu, Dtype weights) const override {
    Shipped p = FusedMoe::prior(gpu, weights);
    p.short_row_bandwidth = 0.7, p.memory_step_us = 0.5;
    return p;
  }
};

}  // namespace

const ExpertsKernel& triton_experts() {
  static const FusedMoe<Gathering> kernel(
      experts_facts("triton_experts", "Triton, 16 bit"),
      {.rule = kLocalMean, .rows_low = 8, .rows_high = 128, .rows = kAll, .gathers = true});
  return kernel;
}
const ExpertsKernel& triton_block_experts() {
  static const FusedMoe<Gathering> kernel(experts_facts("triton_block_experts", "Triton, block fp8"),
                                          {.rule = kTwoSizes, .rows_low = 16, .rows_high = 64, .gathers = true});
  return kernel;
}
const ExpertsKernel& triton_mma_sync_experts() {
  static const ShippedTiles kernel(
      experts_facts("triton_mma_sync_experts", "Triton by mma.sync"),
      {.rule = kShipped, .rows_low = 16, .rows_high = 128, .rows = kZeroed, .gathers = true});
  return kernel;
}
const ExpertsKernel& oai_triton_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(
      experts_facts("oai_triton_experts", "OpenAI's Triton kernels, mxfp4"),
      {.rule = kLocalMean, .rows_low = 8, .rows_high = 128});
  return kernel;
}
const ExpertsKernel& rocm_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(
      experts_facts("rocm_experts", "vLLM's Triton kernels on ROCm in 2024"),
      {.rule = kLocalMean, .rows_low = 8, .rows_high = 128, .rows = kAll});
  return kernel;
}

}  // namespace roofcast
