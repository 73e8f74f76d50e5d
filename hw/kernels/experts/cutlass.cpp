// Experts by CUTLASS: TensorRT-LLM's grouped GEMMs, which vLLM calls through FlashInfer.
// Facts: TensorRT-LLM's sources (cpp/tensorrt_llm/kernels/cutlass_kernels/moe_gemm) and the kernel column of the
// measured tables (docs/equations-moe.md#kernels).

#include "hw/kernels/experts/experts_kernel.h"

namespace roofcast {
namespace {

using enum TileRule;

/// Before its warm-up, CUTLASS runs whichever tactic comes first.
class Untuned final : public ExpertsKernelOf<TallTiles> {
 public:
  using ExpertsKernelOf::ExpertsKernelOf;
  TallTiles prior(const GpuSpec&, Dtype) const override {
    TallTiles p;
    p.bandwidth_fraction = p.compute_fraction = 0.18, p.tile_us = 7.0;
    return p;
  }
};

}  // namespace

const ExpertsKernel& cutlass_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(experts_facts("cutlass_experts", "CUTLASS, tuned at warm-up"),
                                                         {.rule = kTuned, .rows_low = 16, .rows_high = 128});
  return kernel;
}
const ExpertsKernel& cutlass_untuned_experts() {
  static const Untuned kernel(
      experts_facts("cutlass_untuned_experts", "CUTLASS before it is tuned, as timed by a benchmark"),
      {.rule = kTuned, .rows_low = 16, .rows_high = 256});
  return kernel;
}
const ExpertsKernel& cutlass_mma_sync_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(
      experts_facts("cutlass_mma_sync_experts", "CUTLASS by mma.sync"),
      {.rule = kGlobalMean, .rows_low = 8, .rows_high = 64});
  return kernel;
}
const ExpertsKernel& cutlass_block_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(
      experts_facts("cutlass_block_experts", "CUTLASS, block fp8 on Hopper"),
      {.rule = kTuned, .rows_low = 16, .rows_high = 16});
  return kernel;
}
const ExpertsKernel& cutlass_nvfp4_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(experts_facts("cutlass_nvfp4_experts", "CUTLASS, nvfp4"),
                                                         {.rule = kLocalMean, .rows_low = 16, .rows_high = 128});
  return kernel;
}
const ExpertsKernel& cutlass_ungated_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(
      experts_facts("cutlass_ungated_experts", "CUTLASS, experts without a gate"),
      {.rule = kTuned, .rows_low = 16, .rows_high = 128});
  return kernel;
}
const ExpertsKernel& cutlass_ungated_fp8_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(
      experts_facts("cutlass_ungated_fp8_experts", "CUTLASS on Blackwell, fp8, experts without a gate",
                    &cutlass_ungated_experts()),
      {.rule = kLocalMean, .rows_low = 16, .rows_high = 128});
  return kernel;
}
const ExpertsKernel& cutlass_ungated_nvfp4_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(
      experts_facts("cutlass_ungated_nvfp4_experts", "CUTLASS on Blackwell, nvfp4, experts without a gate"),
      {.rule = kLocalMean, .rows_low = 8, .rows_high = 64});
  return kernel;
}
const ExpertsKernel& flashinfer_cutlass_block_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(
      experts_facts("flashinfer_cutlass_block_experts", "CUTLASS by FlashInfer, block fp8, expert parallelism"),
      {.rule = kGlobalMean, .rows_low = 8, .rows_high = 64});
  return kernel;
}
const ExpertsKernel& flashinfer_cutlass_experts() {
  static const ExpertsKernelOf<TallTiles> kernel(
      experts_facts("flashinfer_cutlass_experts", "CUTLASS by FlashInfer, 16 bit"),
      {.rule = kTuned, .rows_low = 128, .rows_high = 256});
  return kernel;
}
const ExpertsKernel& flashinfer_cutlass_nvfp4_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(
      experts_facts("flashinfer_cutlass_nvfp4_experts", "CUTLASS by FlashInfer, nvfp4"),
      {.rule = kTuned, .rows_low = 8, .rows_high = 128});
  return kernel;
}
const ExpertsKernel& cutlass_wide_block_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(
      experts_facts("cutlass_wide_block_experts", "CUTLASS, block fp8, after an all-to-all"),
      {.rule = kGlobalMean, .rows_low = 8, .rows_high = 64});
  return kernel;
}
const ExpertsKernel& cutlass_wide_nvfp4_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(
      experts_facts("cutlass_wide_nvfp4_experts", "CUTLASS, nvfp4, after an all-to-all"),
      {.rule = kTuned, .rows_low = 16, .rows_high = 128});
  return kernel;
}

}  // namespace roofcast
