// The kernels of routed experts, a row each. Facts: vLLM's and TensorRT-LLM's sources, and the kernel column of the
// measured tables (docs/equations-moe.md#kernels).

#include <array>
#include <deque>

#include "base/error.h"
#include "hw/kernels/experts/experts_kernel.h"

namespace roofcast {
namespace {

using enum TileRule;
using enum ExpertRows;

struct Row {
  std::string_view name, help;
  ExpertTraits traits;
  std::string_view lender = "";  ///< stands before its borrowers
};
constexpr ExpertTraits kHalfFilled{kLocalMean, 16, 128, 0.5, kAll};
constexpr std::array<Row, 33> kRows{{
    {"triton_experts", "Triton, 16 bit", {kLocalMean, 8, 128, 1.0, kAll, true}},
    {"triton_block_experts", "Triton, block fp8", {kTwoSizes, 16, 64, 1.0, kLocal, true}},
    {"triton_mma_sync_experts", "Triton by mma.sync", {kShipped, 16, 128, 1.0, kZeroed, true}},
    {"oai_triton_experts", "OpenAI's Triton kernels, mxfp4", {kLocalMean, 8, 128}},
    {"rocm_experts", "vLLM's Triton kernels on ROCm in 2024", {kLocalMean, 8, 128, 1.0, kAll}},
    {"marlin_experts", "Marlin, weights of four bits", {kLocalMean, 8, 64}},
    {"marlin_blackwell_experts", "Marlin on Blackwell, mxfp4", {kGlobalMean, 8, 64, 1.0, kAll}},
    {"cutlass_experts", "CUTLASS, tuned at warm-up", {kTuned, 16, 128}},
    {"cutlass_untuned_experts", "CUTLASS before it is tuned, as a benchmark times it", {kTuned, 16, 256}},
    {"cutlass_mma_sync_experts", "CUTLASS by mma.sync", {kGlobalMean, 8, 64}},
    {"cutlass_block_experts", "CUTLASS, block fp8 on Hopper", {kTuned, 16, 16}},
    {"cutlass_nvfp4_experts", "CUTLASS, nvfp4", {kLocalMean, 16, 128}},
    {"cutlass_ungated_experts", "CUTLASS, experts without a gate", {kTuned, 16, 128}},
    {"cutlass_ungated_fp8_experts",
     "CUTLASS on Blackwell, fp8, experts without a gate",
     {kLocalMean, 16, 128},
     "cutlass_ungated_experts"},
    {"cutlass_ungated_nvfp4_experts", "CUTLASS on Blackwell, nvfp4, experts without a gate", {kLocalMean, 8, 64}},
    {"flashinfer_cutlass_block_experts", "CUTLASS by FlashInfer, block fp8, a rank of many", {kGlobalMean, 8, 64}},
    {"flashinfer_cutlass_experts", "CUTLASS by FlashInfer, 16 bit", {kTuned, 128, 256}},
    {"flashinfer_cutlass_nvfp4_experts", "CUTLASS by FlashInfer, nvfp4", {kTuned, 8, 128}},
    {"deep_gemm_experts", "DeepGEMM on Blackwell, block fp8", {kTwoSizes, 16, 64}, "cutlass_block_experts"},
    {"trtllm_gen_bf16_experts", "trtllm-gen, 16 bit", {kLocalMean, 8, 64}, "triton_experts"},
    {"trtllm_gen_fp8_experts", "trtllm-gen, fp8", {kLocalMean, 16, 128}, "cutlass_experts"},
    {"trtllm_gen_block_experts", "trtllm-gen, block fp8", {kLocalMean, 8, 64, 1.0, kAll}, "triton_block_experts"},
    {"trtllm_gen_block_modular_experts", "trtllm-gen, block fp8, behind an exchange", kHalfFilled},
    {"trtllm_gen_nvfp4_experts", "trtllm-gen, nvfp4", kHalfFilled},
    {"trtllm_gen_mxfp4_experts", "trtllm-gen, mxfp4 under vLLM", {kTuned, 8, 128}, "oai_triton_experts"},
    {"trtllm_gen_mxfp8_experts", "trtllm-gen, mxfp4 times mxfp8 under vLLM", kHalfFilled},
    {"trtllm_gen_mxfp4_trtllm_experts",
     "trtllm-gen, mxfp4 under TensorRT-LLM",
     {kLocalMean, 8, 64},
     "oai_triton_experts"},
    {"trtllm_gen_mxfp8_trtllm_experts", "trtllm-gen, mxfp4 times mxfp8 under TensorRT-LLM", {kLocalMean, 8, 256}},
    {"deep_gemm_masked_experts", "DeepGEMM, masked, behind DeepEP's low-latency mode", {kTuned, 64, 128, 1.0, kPlaced}},
    {"deep_gemm_contiguous_experts",
     "DeepGEMM, contiguous, behind DeepEP's normal mode",
     {kTuned, 128, 128, 1.0, kPadded}},
    {"cutlass_wide_block_experts", "CUTLASS, block fp8, behind an all-to-all", {kGlobalMean, 8, 64}},
    {"cutlass_wide_nvfp4_experts", "CUTLASS, nvfp4, behind an all-to-all", {kTuned, 16, 128}},
    {"trtllm_gen_latency_experts", "trtllm-gen, nvfp4, few tokens", {kLocalMean, 8, 256, 1.0, kAll}},
}};

const ExpertsKernel* find(const std::deque<ExpertsKernel>& all, std::string_view name) {
  for (const ExpertsKernel& kernel : all) {
    if (kernel.name() == name) return &kernel;
  }
  return nullptr;
}

const std::deque<ExpertsKernel>& all_kernels() {
  static const std::deque<ExpertsKernel> all = [] {
    std::deque<ExpertsKernel> made;
    for (const Row& row : kRows) {
      KernelFacts facts{.name = row.name, .help = row.help, .form = "equations-moe.md"};
      facts.unexplained = {0.05, 0.35, 0.5};
      if (!row.lender.empty()) facts.lenders[0] = find(made, row.lender);
      made.emplace_back(facts, row.traits);
    }
    return made;
  }();
  return all;
}

}  // namespace

std::vector<const ExpertsKernel*> expert_kernels() {
  std::vector<const ExpertsKernel*> kernels;
  for (const ExpertsKernel& kernel : all_kernels()) kernels.push_back(&kernel);
  return kernels;
}

const ExpertsKernel& experts_kernel(std::string_view name) {
  const ExpertsKernel* found = find(all_kernels(), name);
  SIM_CHECK(found != nullptr, "no such kernel of experts");
  return *found;
}

}  // namespace roofcast
