#pragma once
// Constants of the overhead that a benchmark loop measures together with a kernel. GPU files have them so that the
// published tables can be validated. Only calibrate/rows uses them; no forecast does.

#include <span>
#include <vector>

#include "hw/kernel_of.h"

namespace roofcast {

/// The loop around a GEMM. A loop without one of these constants has its default, which adds nothing.
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

/// A plug-in call beside the GEMM: weight-only and int8.
const GemmLoop& plain_gemm_loop();
/// The activations are quantized by a kernel of their own: fp8, block fp8, nvfp4.
const GemmLoop& quantizing_gemm_loop();
/// The same without a CUDA graph, so that host time may be measured instead: vLLM's block fp8.
const GemmLoop& eager_gemm_loop();

/// The loop around a layer of experts.
struct ExpertsLoopParameters {
  double host_lead_us = 0.0, host_floor_us = 0.0;
  static std::span<const Parameter<ExpertsLoopParameters>> fields();
};
/// Without a CUDA graph, so that host time may be measured instead: DeepGEMM's experts behind DeepEP's normal mode.
const KernelOf<ExpertsLoopParameters>& eager_experts_loop();

/// The loop around attention. Every kernel has its own, NAME_loop, because each finds another share of its cache in L2.

/// A loop repeats the call of one layer and finds part of its cache in L2: all of it up to `l2_share` of L2, less as
/// the cache outgrows that. In an engine, other layers have evicted the cache.
struct CacheLoop {
  double l2_share = 0.5, l2_cliff = 1.0, l2_bandwidth_tb_per_s = 8.0;
  /// For TensorRT-LLM's kernels, whose tables before Hopper exceed the datasheet bandwidth by a factor of 1.7: keys and
  /// values are the same pages.
  double benchmark_reuse = 0.0;
  static std::span<const Parameter<CacheLoop>> fields();
};
/// Without a CUDA graph, host time may be measured instead: vLLM's latent attention.
struct EagerLoop {
  double eager_device_us = 0.0, eager_host_us = 0.0;
  static std::span<const Parameter<EagerLoop>> fields();
};
/// As CacheLoop, for a cache of latents, with or without a CUDA graph.
struct LatentLoop : EagerLoop {
  double l2_share = 1.0, l2_bandwidth_tb_per_s = 2.6;
  static std::span<const Parameter<LatentLoop>> fields();
};

/// Whether benchmarks call the kernel without a CUDA graph: vLLM's latent attention.
bool is_timed_eagerly(const Kernel& kernel);
/// The loop around an attention kernel: a CacheLoop for decode, a LatentLoop for latent decode, an EagerLoop for latent
/// prefill that is timed without a graph. Null: only the kernel is timed.
const Kernel* attention_loop_of(const Kernel& kernel);
/// The loops of all of `kernels`. Each lender comes before the kernels that borrow from it.
std::vector<const Kernel*> attention_loops(std::span<const Kernel* const> kernels);

}  // namespace roofcast
