#pragma once
#include <span>
#include <string_view>

#include "hw/cost.h"
#include "hw/dtype.h"
#include "hw/kernel_of.h"

namespace roofcast {

enum class KernelFamily;

/// Which of an engine's kernels runs. In benchmarks it decides the launch floor; in serving, kFlashInfer is
/// trtllm-gen's low-latency kernel for products in block fp8 on Blackwell (docs/equations-gemm.md), the others are
/// priced alike.
enum class GemmKernel { kDefault, kDeepGemm, kFlashInfer };

/// C[m,n] = A[m,k] * B[k,n]; B holds the weights.
struct GemmShape {
  double m = 0, n = 0, k = 0;
  Dtype weights = Dtype::kBf16;
  Dtype activations = Dtype::kBf16;
  double output_bytes = 2.0;  ///< of one element of C
  Scales weight_scales{};     ///< group 0: the format's native scales
  bool row_scales = true;     ///< activations carry a scale a row or block, computed at run time; else one a tensor
  GemmKernel kernel = GemmKernel::kDefault;
};

/// Constants of one GPU, engine and format. The defaults are the priors: what new GPUs of the Hopper kind
/// show before they are measured (docs/equations-gemm.md#constants).
struct GemmParameters {
  double compute_efficiency = 0.84;    ///< matrix-unit rate over the datasheet's, clocks not yet throttled
  double sustained_clock = 0.9;        ///< clock under the power limit over the cool one
  double bandwidth_efficiency = 0.82;  ///< DRAM
  double l2_bandwidth_ratio = 1.1;     ///< rate of L2-resident traffic over the DRAM datasheet's
  double l2_usable = 0.45;             ///< part of L2 that a benchmark's loop finds again
  double tile_intensity = 50;          ///< elements: tm tn / (tm + tn) at which L2 no longer starves the matrix units
  double launch_us = 2.0;              ///< launch and drain of the kernel
  double wave_us = 0.8;                ///< prologue and epilogue of one wave of tiles
  double epilogue_us = 0.1;            ///< writing out one 128 x 128 tile, smaller ones in proportion
  double k_step_us = 0.08;             ///< latency of one k-step
  double ramp_k_steps = 0.5;           ///< k-steps before wave_us is paid in full
  double lone_block_rate = 0.8;        ///< matrix-unit rate of one smaller tile alone on an Ampere SM, over that of two
  double split_k_us = 2.2;             ///< the reduction kernel after a split along k
  double odd_rows = 1.0;               ///< matrix-unit rate where m is not a multiple of 4
  double gemv_us = 0.0;                ///< saved by the kernel for one row
  double benchmark_us = 0.0;         ///< beside the GEMM in a benchmark: launch of a dynamic quantization, plug-in call
  double quantization_row_us = 0.0;  ///< one row of it, one row an SM at a time
  double quantization_step_us = 0.0;       ///< every 2048 elements of such a row
  double quantization_memory_ratio = 0.6;  ///< its DRAM rate over the datasheet's
  double quantization_l2_ratio = 1.0;      ///< its L2 rate over the DRAM datasheet's
  double host_floor_us = 0.0;              ///< eager timing: the host's pace, by kernel
  double host_floor_deep_gemm_us = 0.0;
  double host_odd_rows_us =
      0.0;  ///< on top of DeepGEMM's, where m is not a multiple of 4 and scales are copied to align them
  double host_floor_flash_infer_us = 0.0;

  static std::span<const Parameter<GemmParameters>> fields();
};

/// By format of the weights.
const KernelOf<GemmParameters>& gemm_kernel();
/// Of served steps, where an engine tunes what the tables ran untuned.
const KernelOf<GemmParameters>& gemm_tuned_kernel();

/// Whose constants a product takes: those of the weights' format, or those of the weight-only kernels (block
/// int4) where the weights are unpacked to 16-bit activations.
Dtype gemm_block(Dtype weights, Dtype activations);
/// What is assumed of a block before it is measured; `wide` are the constants of bf16 on the same GPU, where they
/// are known: they carry its launch, bandwidth and clocks.
GemmParameters gemm_prior(Dtype block, const GpuSpec& gpu, KernelFamily family, const GemmParameters* wide = nullptr);
/// Constants that play no part in that block's kernels: a fit holds them.
std::span<const std::string_view> unused_gemm_fields(Dtype block, const GpuSpec& gpu, KernelFamily family);

/// Source: docs/equations-gemm.md. SIM_CHECK on shapes below one; a format the GPU cannot compute with is
/// refused earlier, where the deployment is read.
Cost gemm(const GemmShape& shape, const Machine& machine);
/// The same under given constants, as the fit calls it.
Cost gemm_with(const GemmShape& shape, const GemmParameters& constants, const GpuSpec& gpu, KernelFamily family,
               Timing timing);

}  // namespace roofcast
