#pragma once
// Constants of what a benchmark's loop times beside a kernel. They stand in a GPU's files, so that the tables they were
// measured in can be validated; only calibrate/rows computes with them, and no forecast does.

#include <span>
#include <vector>

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

/// Beside attention. Every kernel has a loop of its own, NAME_loop: each finds another share of its cache in the L2.

/// A loop repeats the call of one layer and finds part of its cache in the L2: all of what fits `l2_share` of it, less
/// the more the cache outgrows that. An engine finds nothing: the other layers have evicted it.
struct CacheLoop {
  double l2_share = 0.5, l2_cliff = 1.0, l2_bandwidth_tb_per_s = 8.0;
  /// Of TensorRT-LLM's kernels, whose tables before Hopper beat the datasheet's bandwidth by 1.7: keys and values are
  /// the same pages.
  double benchmark_reuse = 0.0;
  static std::span<const Parameter<CacheLoop>> fields();
};
/// Without a graph the host may be what is timed: vLLM's latent attention.
struct EagerLoop {
  double eager_device_us = 0.0, eager_host_us = 0.0;
  static std::span<const Parameter<EagerLoop>> fields();
};
/// As in CacheLoop, of a cache of latents, with or without a graph.
struct LatentLoop : EagerLoop {
  double l2_share = 1.0, l2_bandwidth_tb_per_s = 2.6;
  static std::span<const Parameter<LatentLoop>> fields();
};

/// Kernels that a benchmark calls without a graph: vLLM's latent attention.
bool is_timed_eagerly(const Kernel& kernel);
/// The loop that times a kernel of attention: a CacheLoop for new tokens, a LatentLoop for those over latents, an
/// EagerLoop for prompts over latents that are timed eagerly. Null: the kernel alone is timed.
const Kernel* attention_loop_of(const Kernel& kernel);
/// The loops of all of `kernels`, which have each lender before those that borrow.
std::vector<const Kernel*> attention_loops(std::span<const Kernel* const> kernels);

}  // namespace roofcast
