#pragma once
// Constants of what a benchmark's loop times beside a kernel. They stand in a GPU's files, so that the tables they were
// measured in can be validated; only calibrate/rows computes with them, and no forecast does.

#include "hw/kernel_of.h"

namespace roofcast {

/// Beside a product. A loop without one of them has its default, which adds nothing.
struct GemmLoopParameters {
  double benchmark_us = 0.0;
  double quantization_row_us = 0.0, quantization_step_us = 0.0;
  double quantization_memory_ratio = 0.6, quantization_l2_ratio = 1.0;
  double host_floor_us = 0.0, host_floor_deep_gemm_us = 0.0, host_odd_rows_us = 0.0, host_floor_flash_infer_us = 0.0;
};

class GemmLoop : public Kernel {
 public:
  using Kernel::Kernel;
  virtual const GemmLoopParameters& parameters(const ConstantsBlock& constants) const = 0;
  virtual ConstantsBlock with_parameters(const GemmLoopParameters& values) const = 0;
};

/// A plug-in call beside the product: weight-only and int8.
const GemmLoop& plain_gemm_loop();
/// The quantization of the activations as a kernel of its own: fp8, block fp8, nvfp4.
const GemmLoop& quantizing_gemm_loop();
/// The same without a graph, so that the host may be what is timed: vLLM's block fp8.
const GemmLoop& eager_gemm_loop();

/// Beside a layer of experts.
struct ExpertsLoopParameters {
  double host_lead_us = 0.0, host_floor_us = 0.0;
  static std::span<const Parameter<ExpertsLoopParameters>> fields();
};
/// Without a graph, so that the host may be what is timed: DeepGEMM's experts behind DeepEP's normal mode.
const KernelOf<ExpertsLoopParameters>& eager_experts_loop();

}  // namespace roofcast
