// Experts by DeepGEMM, block fp8: on Blackwell, behind DeepEP in either mode, and as vLLM runs it without DeepEP.
// Facts: DeepGEMM's and the engines' sources, and the kernel column of the measured tables
// (docs/equations-moe.md#kernels).

#include "hw/kernels/experts/experts_kernel.h"

namespace roofcast {
namespace {

using enum TileRule;
using enum ExpertRows;

/// A benchmark of a padded layer measures host time or the longest kernels, but not launches, routing and sorting.
/// These keep the values assumed for all expert kernels.
struct Contiguous : ExpertsParameters {
  static std::span<const Parameter<Contiguous>> fields() { return kExpertsFields<Contiguous, true>; }
};

}  // namespace

const ExpertsKernel& deep_gemm_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(
      experts_facts("deep_gemm_experts", "DeepGEMM on Blackwell, block fp8", &cutlass_block_experts()),
      {.rule = kTwoSizes, .rows_low = 16, .rows_high = 64});
  return kernel;
}
const ExpertsKernel& deep_gemm_masked_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(
      experts_facts("deep_gemm_masked_experts", "DeepGEMM, masked, after DeepEP's low-latency mode"),
      {.rule = kTuned, .rows_low = 64, .rows_high = 128, .rows = kPlaced});
  return kernel;
}
const ExpertsKernel& deep_gemm_contiguous_experts() {
  static const ExpertsKernelOf<Contiguous> kernel(
      experts_facts("deep_gemm_contiguous_experts", "DeepGEMM, contiguous, after DeepEP's normal mode"),
      {.rule = kTuned, .rows_low = 128, .rows_high = 128, .rows = kPadded});
  return kernel;
}
const ExpertsKernel& deep_gemm_reserved_experts() {
  static const ExpertsKernelOf<Contiguous> kernel(
      experts_facts("deep_gemm_reserved_experts", "DeepGEMM, contiguous, where the host does not know the loads",
                    &deep_gemm_contiguous_experts()),
      {.rule = kTuned, .rows_low = 128, .rows_high = 128, .rows = kReserved});
  return kernel;
}

}  // namespace roofcast
