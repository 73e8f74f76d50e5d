// Experts by Marlin, for 4-bit weights.
// Facts: vLLM's sources and the kernel column of the measured tables (docs/equations-moe.md#kernels).

#include "hw/kernels/experts/experts_kernel.h"

namespace roofcast {
namespace {

using enum TileRule;
using enum ExpertRows;

}  // namespace

const ExpertsKernel& marlin_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(experts_facts("marlin_experts", "Marlin, 4-bit weights"),
                                                         {.rule = kLocalMean, .rows_low = 8, .rows_high = 64});
  return kernel;
}
const ExpertsKernel& marlin_blackwell_experts() {
  static const ExpertsKernelOf<ExpertsParameters> kernel(
      experts_facts("marlin_blackwell_experts", "Marlin on Blackwell, mxfp4"),
      {.rule = kGlobalMean, .rows_low = 8, .rows_high = 64, .rows = kAll});
  return kernel;
}

}  // namespace roofcast
