// Experts by Triton: vLLM's fused_moe, OpenAI's kernels for mxfp4, and what ran on AMD GPUs in 2024.
// Facts: vLLM's sources (vllm/model_executor/layers/fused_moe) and the kernel column of the measured tables
// (docs/equations-moe.md#kernels).

#include <algorithm>

#include "hw/kernels/experts/experts_kernel.h"

namespace roofcast {
namespace {

using enum TileRule;
using enum ExpertRows;

/// vLLM's fused_moe. Its first product gathers its rows, and reads rows whose inner dimension is not a multiple of 16
/// element by element.
class FusedMoe : public ExpertsKernel {
 public:
  using ExpertsKernel::ExpertsKernel;
  MoeParameters prior(const GpuSpec& gpu, Dtype) const override {
    MoeParameters p;
    const double per_sm = gpu.peak(Dtype::kBf16).base() / gpu.sm_count;
    p.unaligned_slowdown = std::clamp(per_sm / kUnalignedFlopsPerSm, 1.0, 10.0);
    return p;
  }

 protected:
  bool has(double MoeParameters::*constant) const override {
    return constant == &MoeParameters::gather_loss || constant == &MoeParameters::unaligned_slowdown ||
           ExpertsKernel::has(constant);
  }
  /// Loads of single elements take instructions, as many a cycle everywhere: the faster the matrix units, the more the
  /// kernel loses by them. 1: it was measured without.
  void follow(MoeParameters& p, const CarryOverCase& to) const override {
    if (p.unaligned_slowdown > 1.0)
      p.unaligned_slowdown = std::clamp(p.unaligned_slowdown * to.ratios.operations, 1.0, 10.0);
    ExpertsKernel::follow(p, to);
  }

 private:
  /// What an SM of an H100 or H200 is left with in products that Triton reads element by element: 7.5 TFLOP/s over the
  /// slowdown of 4.9-5.0 fitted there. Instructions bound it, not matrix units, and so they do elsewhere.
  static constexpr double kUnalignedFlopsPerSm = 1.5e12;
};

/// vLLM's default tiles for mma.sync, which read their weights in rows of 64 bytes.
class ShippedTiles final : public FusedMoe {
 public:
  using FusedMoe::FusedMoe;
  MoeParameters prior(const GpuSpec& gpu, Dtype weights) const override {
    MoeParameters p = FusedMoe::prior(gpu, weights);
    p.short_row_bandwidth = 0.7, p.memory_step_us = 0.5;
    return p;
  }

 private:
  bool has(double MoeParameters::*constant) const override {
    return constant == &MoeParameters::short_row_bandwidth || constant == &MoeParameters::memory_step_us ||
           FusedMoe::has(constant);
  }
};

}  // namespace

const ExpertsKernel& triton_experts() {
  static const FusedMoe kernel(experts_facts("triton_experts", "Triton, 16 bit"),
                               {kLocalMean, 8, 128, 1.0, kAll, true});
  return kernel;
}
const ExpertsKernel& triton_block_experts() {
  static const FusedMoe kernel(experts_facts("triton_block_experts", "Triton, block fp8"),
                               {kTwoSizes, 16, 64, 1.0, kLocal, true});
  return kernel;
}
const ExpertsKernel& triton_mma_sync_experts() {
  static const ShippedTiles kernel(experts_facts("triton_mma_sync_experts", "Triton by mma.sync"),
                                   {kShipped, 16, 128, 1.0, kZeroed, true});
  return kernel;
}
const ExpertsKernel& oai_triton_experts() {
  static const ExpertsKernel kernel(experts_facts("oai_triton_experts", "OpenAI's Triton kernels, mxfp4"),
                                    {kLocalMean, 8, 128});
  return kernel;
}
const ExpertsKernel& rocm_experts() {
  static const ExpertsKernel kernel(experts_facts("rocm_experts", "vLLM's Triton kernels on ROCm in 2024"),
                                    {kLocalMean, 8, 128, 1.0, kAll});
  return kernel;
}

}  // namespace roofcast
