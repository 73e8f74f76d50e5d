// Experts by trtllm-gen, TensorRT-LLM's generated kernels for data-center Blackwell.
// Facts: the engines' sources and the kernel column of the measured tables (docs/equations-moe.md#kernels).

#include "hw/kernels/experts/experts_kernel.h"

namespace roofcast {
namespace {

using enum TileRule;
using enum ExpertRows;

constexpr ExpertTraits kHalfFilled{.rule = kLocalMean, .rows_low = 16, .rows_high = 128, .fill = 0.5, .rows = kAll};

}  // namespace

const ExpertsKernel& trtllm_gen_bf16_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(
      experts_facts("trtllm_gen_bf16_experts", "trtllm-gen, 16 bit", &triton_experts()),
      {.rule = kLocalMean, .rows_low = 8, .rows_high = 64});
  return kernel;
}
const ExpertsKernel& trtllm_gen_fp8_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(
      experts_facts("trtllm_gen_fp8_experts", "trtllm-gen, fp8", &cutlass_experts()),
      {.rule = kLocalMean, .rows_low = 16, .rows_high = 128});
  return kernel;
}
const ExpertsKernel& trtllm_gen_block_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(
      experts_facts("trtllm_gen_block_experts", "trtllm-gen, block fp8", &triton_block_experts()),
      {.rule = kLocalMean, .rows_low = 8, .rows_high = 64, .rows = kAll});
  return kernel;
}
const ExpertsKernel& trtllm_gen_block_modular_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(
      experts_facts("trtllm_gen_block_modular_experts", "trtllm-gen, block fp8, after an all-to-all"), kHalfFilled);
  return kernel;
}
const ExpertsKernel& trtllm_gen_nvfp4_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(experts_facts("trtllm_gen_nvfp4_experts", "trtllm-gen, nvfp4"),
                                                         kHalfFilled);
  return kernel;
}
const ExpertsKernel& trtllm_gen_mxfp4_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(
      experts_facts("trtllm_gen_mxfp4_experts", "trtllm-gen, mxfp4 under vLLM", &oai_triton_experts()),
      {.rule = kTuned, .rows_low = 8, .rows_high = 128});
  return kernel;
}
const ExpertsKernel& trtllm_gen_mxfp8_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(
      experts_facts("trtllm_gen_mxfp8_experts", "trtllm-gen, mxfp4 times mxfp8 under vLLM"), kHalfFilled);
  return kernel;
}
const ExpertsKernel& trtllm_gen_mxfp4_trtllm_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(
      experts_facts("trtllm_gen_mxfp4_trtllm_experts", "trtllm-gen, mxfp4 under TensorRT-LLM", &oai_triton_experts()),
      {.rule = kLocalMean, .rows_low = 8, .rows_high = 64});
  return kernel;
}
const ExpertsKernel& trtllm_gen_mxfp8_trtllm_experts() {
  static const ExpertsKernelOf<TallTiles> kernel(
      experts_facts("trtllm_gen_mxfp8_trtllm_experts", "trtllm-gen, mxfp4 times mxfp8 under TensorRT-LLM"),
      {.rule = kLocalMean, .rows_low = 8, .rows_high = 256});
  return kernel;
}
const ExpertsKernel& trtllm_gen_latency_experts() {
  static const ExpertsKernelOf<TallTiles> kernel(
      experts_facts("trtllm_gen_latency_experts", "trtllm-gen, nvfp4, few tokens"),
      {.rule = kLocalMean, .rows_low = 8, .rows_high = 256, .rows = kAll});
  return kernel;
}

}  // namespace roofcast
