#include "hw/kernels/moe_facts.h"

#include "hw/efficiency.h"

namespace roofcast {
namespace {

struct KernelFacts {
  TileRule rule = TileRule::kTuned;
  double low = 16.0, high = 128.0, fill = 1.0;
  double all_rows = 0.0;  ///< MoeParameters::all_rows
};

/// Do the rows of the first product stay where the tokens lie? vLLM's Triton kernel reads them there; others have them
/// copied expert by expert, or show no difference in their times.
bool gathers(MoeVariant variant, Dtype weights, const GpuSpec& gpu, KernelFamily family) {
  const bool triton = weights == Dtype::kBf16 || weights == Dtype::kFp8Block;
  return family == KernelFamily::kVllm && variant == MoeVariant::kDefault && triton &&
         gpu.architecture != Architecture::kBlackwell;
}

KernelFacts facts_of(MoeVariant variant, Dtype weights, const GpuSpec& gpu, KernelFamily family) {
  using enum TileRule;
  const bool blackwell = gpu.architecture == Architecture::kBlackwell,
             ampere = gpu.architecture == Architecture::kAmpere;
  if (family == KernelFamily::kTrtllm) {
    if (ampere) return {kGlobalMean, 8, 64};
    if (variant == MoeVariant::kLowLatency) return {kLocalMean, 8, 256, 1.0, 1};
    if (variant == MoeVariant::kEightBitActivations) return {kLocalMean, 8, 256};
    if (weights == Dtype::kMxfp4) return {kLocalMean, 8, blackwell ? 64.0 : 128.0};
    if (variant == MoeVariant::kTwoMatrices && weights == Dtype::kNvfp4) return {kLocalMean, 8, 64};
    if (weights == Dtype::kNvfp4) return {kLocalMean, 16, 128};
    if (variant == MoeVariant::kTwoMatrices && weights == Dtype::kFp8 && blackwell) return {kLocalMean, 16, 128};
    if (weights == Dtype::kFp8Block) return blackwell ? KernelFacts{kTwoSizes, 16, 64} : KernelFacts{kTuned, 16, 16};
    return {kTuned, 16, 128};
  }
  if (ampere) return {kShipped, 16, 128, 1.0, 2};
  if (variant == MoeVariant::kMarlin)
    return blackwell ? KernelFacts{kGlobalMean, 8, 64, 1.0, 1} : KernelFacts{kLocalMean, 8, 64};
  if (weights == Dtype::kInt4) return {kLocalMean, 8, 64};
  if (variant == MoeVariant::kUntuned) return {kTuned, 16, 256};
  if (variant == MoeVariant::kExpertParallel) return {kGlobalMean, 8, 64};
  if (variant == MoeVariant::kCutlass)
    return {kTuned, weights == Dtype::kBf16 ? 128.0 : 8.0, weights == Dtype::kBf16 ? 256.0 : 128.0};
  if (variant == MoeVariant::kModular || variant == MoeVariant::kEightBitActivations)
    return {kLocalMean, 16, 128, 0.5, 1};
  if (!blackwell) {
    if (weights == Dtype::kFp8Block) return {kTwoSizes, 16, 64};
    return {kLocalMean, 8, 128, 1.0, weights == Dtype::kBf16 ? 1.0 : 0.0};
  }
  if (weights == Dtype::kNvfp4) return {kLocalMean, 16, 128, 0.5, 1};
  if (weights == Dtype::kFp8Block) return {kLocalMean, 8, 64, 1.0, 1};
  if (weights == Dtype::kMxfp4) return {kTuned, 8, 128};
  return {kLocalMean, weights == Dtype::kFp8 ? 16.0 : 8.0, weights == Dtype::kFp8 ? 128.0 : 64.0};
}

}  // namespace

void put_moe_facts(MoeParameters& p, MoeVariant variant, Dtype weights, const GpuSpec& gpu, KernelFamily family) {
  const KernelFacts facts = facts_of(variant, weights, gpu, family);
  p.tile_rule = static_cast<double>(facts.rule);
  p.tile_rows_low = facts.low;
  p.tile_rows_high = facts.high;
  p.tile_fill = facts.fill;
  p.all_rows = facts.all_rows;
  p.gathers = gathers(variant, weights, gpu, family) ? 1.0 : 0.0;
}

}  // namespace roofcast
