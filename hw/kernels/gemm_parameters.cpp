// The constants of a GEMM: their bounds, their priors by format, and which of them a kernel has at all.

#include <algorithm>
#include <array>
#include <cmath>

#include "hw/efficiency.h"
#include "hw/kernels/gemm.h"
#include "hw/kernels/gemm_tiles.h"

namespace roofcast {
namespace {

using P = GemmParameters;
using enum Transfer;
constexpr std::array<Parameter<P>, 24> kFields{{
    {"compute_efficiency", &P::compute_efficiency, 0.03, 1.0, kKept,
     "matrix-unit rate over the datasheet's, clocks not throttled"},
    {"sustained_clock", &P::sustained_clock, 0.7, 1.0, kKept, "clock under the power limit over the cool one"},
    {"bandwidth_efficiency", &P::bandwidth_efficiency, 0.4, 1.0, kMemoryShare, "DRAM bandwidth over the datasheet's"},
    {"l2_bandwidth_ratio", &P::l2_bandwidth_ratio, 0.4, 10.0, kL2OverMemory,
     "rate of L2-resident traffic over the DRAM datasheet's"},
    {"l2_usable", &P::l2_usable, 0.05, 1.0, kKept, "part of L2 in which a benchmark's loop finds its data again"},
    {"tile_intensity", &P::tile_intensity, 10.0, 200.0, kTileIntensity,
     "tm tn / (tm + tn) at which L2 no longer starves the matrix units"},
    {"launch_us", &P::launch_us, 0.0, 20.0, kCycles, "launch and drain of the kernel"},
    {"wave_us", &P::wave_us, 0.0, 10.0, kCycles, "prologue and epilogue of one wave of tiles"},
    {"epilogue_us", &P::epilogue_us, 0.0, 5.0, kCycles, "writing out one 128 x 128 tile"},
    {"k_step_us", &P::k_step_us, 0.0, 2.0, kCycles, "latency of one k-step of 128 bytes"},
    {"ramp_k_steps", &P::ramp_k_steps, 0.5, 50.0, kKept, "k-steps before wave_us is paid in full"},
    {"lone_block_rate", &P::lone_block_rate, 0.5, 1.0, kKept,
     "matrix-unit rate of one smaller tile alone on an SM, over that of two"},
    {"split_k_us", &P::split_k_us, 0.0, 10.0, kCycles, "the reduction after a split along k"},
    {"odd_rows", &P::odd_rows, 0.5, 1.0, kKept, "matrix-unit rate where m is not a multiple of 4"},
    {"gemv_us", &P::gemv_us, -20.0, 5.0, kCycles, "saved by the kernel for one row"},
    {"benchmark_us", &P::benchmark_us, 0.0, 40.0, kCycles,
     "timed beside the GEMM: launch of a dynamic quantization, plug-in call"},
    {"quantization_row_us", &P::quantization_row_us, 0.0, 2.0, kCycles,
     "one row of the quantization, one row an SM at a time"},
    {"quantization_step_us", &P::quantization_step_us, 0.0, 2.0, kCycles, "every 2048 elements of such a row"},
    {"quantization_memory_ratio", &P::quantization_memory_ratio, 0.05, 1.0, kMemoryShare,
     "its DRAM rate over the datasheet's"},
    {"quantization_l2_ratio", &P::quantization_l2_ratio, 0.2, 4.0, kL2OverMemory,
     "its L2 rate over the DRAM datasheet's"},
    {"host_floor_us", &P::host_floor_us, 0.0, 400.0, kHost, "eager timing: the host's pace, other kernels"},
    {"host_floor_deep_gemm_us", &P::host_floor_deep_gemm_us, 0.0, 400.0, kHost,
     "eager timing: the host's pace, DeepGEMM"},
    {"host_odd_rows_us", &P::host_odd_rows_us, 0.0, 100.0, kHost,
     "eager timing: more for DeepGEMM where m is no multiple of 4"},
    {"host_floor_flash_infer_us", &P::host_floor_flash_infer_us, 0.0, 400.0, kHost,
     "eager timing: the host's pace, FlashInfer"},
}};

/// A short list of names, filled once a call; views into kFields.
struct Names {
  std::array<std::string_view, kFields.size()> names{};
  std::size_t count = 0;
  void add(std::string_view name) { names[count++] = name; }
};

bool quantizes(Dtype block) { return block == Dtype::kFp8 || block == Dtype::kFp8Block || block == Dtype::kNvfp4; }

constexpr double kLeastClock = 0.7;  ///< bound of GemmParameters::sustained_clock

/// Matrix units so much slower than their peak want operands from L2 so much later, which feeds them as before.
void slow_matrix_units(GemmParameters& p, double factor) {
  p.compute_efficiency *= factor;
  p.tile_intensity *= factor;
}

/// A chip at the limit of its power gives up half of what it lacks in watts an operation in rate (clock and voltage
/// fall together); the rest it saves. More watts than before raise the clock to the cool one at most.
void follow_power(GemmParameters& p, double watts) {
  const double root = std::sqrt(watts);
  if (root > 1.0) {
    p.sustained_clock = std::min(1.0, p.sustained_clock * root);
    return;
  }
  const double sustained = std::max(kLeastClock, p.sustained_clock * root);
  slow_matrix_units(p, p.sustained_clock * root / sustained);
  p.sustained_clock = sustained;
}

/// Blackwell's DeepGEMM wants scales packed to their exponents. Of fp32 ones the host launches five kernels more a call
/// (the weights': arange, divide, select, pack; the activations': pack), and where rows are no multiple of four, five
/// of PyTorch's for the activations' one, where Hopper's copies once: the unit of what a launch takes the host.
/// Benchmarks alone. Source: deepseek-ai/DeepGEMM, csrc/apis/layout.hpp and csrc/jit_kernels/impls/smxx_layout.hpp.
constexpr double kPackingLaunches = 5.0, kOddLaunches = 4.0;
void follow_scales(GemmParameters& p, const GpuSpec& from, const GpuSpec& to) {
  if (from.architecture == Architecture::kHopper && to.architecture == Architecture::kBlackwell) {
    p.host_floor_deep_gemm_us += kPackingLaunches * p.host_odd_rows_us;
    p.host_odd_rows_us *= kOddLaunches;
  } else if (from.architecture == Architecture::kBlackwell && to.architecture == Architecture::kHopper) {
    p.host_odd_rows_us /= kOddLaunches;
    p.host_floor_deep_gemm_us = std::max(0.0, p.host_floor_deep_gemm_us - kPackingLaunches * p.host_odd_rows_us);
  }
}

/// Matrix units at the limit of the board's power run no faster, cool or under load, whatever a kernel reached
/// elsewhere.
void limit(GemmParameters& p, double most) {
  const double under_load = std::min(most, p.compute_efficiency * p.sustained_clock);
  slow_matrix_units(p, std::min(1.0, most / p.compute_efficiency));
  p.sustained_clock = under_load / p.compute_efficiency;
}

class Gemm final : public KernelOf<GemmParameters> {
  using KernelOf::KernelOf;
  void follow(GemmParameters& p, const CarryOverCase& to) const override {
    follow_power(p, to.ratios.power);
    follow_scales(p, to.from, to.to);
    limit(p, to.how.matrix_limit);
  }
};
constexpr Unexplained kUnexplained{0.05, 0.2, 0.2};

bool is_wide(Dtype dtype) { return element_bits(dtype) >= 16.0; }

}  // namespace

std::span<const Parameter<GemmParameters>> GemmParameters::fields() { return kFields; }

const KernelOf<GemmParameters>& gemm_kernel() {
  static const Gemm kernel({"gemm", "matrix products", "equations-gemm.md", kUnexplained});
  return kernel;
}
const KernelOf<GemmParameters>& gemm_tuned_kernel() {
  static const Gemm kernel({"gemm_tuned", "matrix products, tuned at warm-up", "equations-gemm.md", kUnexplained});
  return kernel;
}

/// 16-bit and wider operands share the constants of bf16. Weights that are unpacked to wide activations go
/// through one kind of kernel whatever their width: block int4.
Dtype gemm_block(Dtype weights, Dtype activations) {
  if (is_wide(activations)) return is_wide(weights) ? Dtype::kBf16 : Dtype::kInt4;
  if (is_wide(weights)) return Dtype::kBf16;
  switch (activations) {
    case Dtype::kFp8:
      return weights == Dtype::kFp8Block ? Dtype::kFp8Block : Dtype::kFp8;
    case Dtype::kFp8Block:
      return Dtype::kFp8Block;
    case Dtype::kNvfp4:
    case Dtype::kMxfp4:
      return Dtype::kNvfp4;
    default:
      return Dtype::kInt8;
  }
}

GemmParameters gemm_prior(Dtype block, const GpuSpec& gpu, KernelFamily family, const GemmParameters* wide) {
  GemmParameters prior = wide ? *wide : GemmParameters{};
  const bool vllm = family != KernelFamily::kTrtllm;
  const bool older = has_mma_sync_only(gpu);
  if (!wide && older) {
    prior.compute_efficiency = 0.93;
    prior.launch_us = 1.9;
    prior.wave_us = 2.0;
    prior.epilogue_us = 1.2;
    prior.k_step_us = 0.21;
    prior.ramp_k_steps = 1.7;
    prior.lone_block_rate = 0.67;
    prior.gemv_us = 0.6;
  }
  if (!wide && gpu.architecture == Architecture::kBlackwell) prior.compute_efficiency = 0.75;
  if (block != Dtype::kBf16) prior.gemv_us = 0.0;
  if (quantizes(block)) prior.benchmark_us = block == Dtype::kFp8 && !vllm ? 10.0 : 2.0;
  if (block == Dtype::kNvfp4) {  // as a B200 shows
    prior.benchmark_us = 3.8;
    prior.k_step_us = 0.15;
  }
  if (block == Dtype::kFp8 && vllm) {
    prior.quantization_row_us = 0.35;
    prior.quantization_step_us = 0.6;
  }
  if (block == Dtype::kFp8Block && vllm) {
    prior.quantization_step_us = 0.5;
    prior.host_floor_us = 170;
    prior.host_floor_deep_gemm_us = 92;
    prior.host_odd_rows_us = 10;
    prior.host_floor_flash_infer_us = 60;
  }
  if (block == Dtype::kInt4 && older) prior.ramp_k_steps = 30;
  if (block == Dtype::kInt4 || block == Dtype::kInt8) prior.benchmark_us = 7.0;
  return prior;
}

std::span<const std::string_view> unused_gemm_fields(Dtype block, const GpuSpec& gpu, KernelFamily family) {
  static thread_local Names names;
  names = {};
  const bool vllm = family != KernelFamily::kTrtllm;
  const bool older = has_mma_sync_only(gpu);
  if (!gemm_tiling(block, gpu, family, 1, 1, 1).split_k) names.add("split_k_us");
  if (!older) names.add("ramp_k_steps");
  if (!older) names.add("lone_block_rate");
  // vLLM's fp8 for Blackwell loses 13 us at one row; its cause is not known.
  if (!older && (block != Dtype::kFp8 || !vllm)) names.add("gemv_us");
  if (block != Dtype::kFp8 && block != Dtype::kFp8Block) names.add("odd_rows");
  if (block == Dtype::kBf16) names.add("benchmark_us");
  if (!quantizes(block)) names.add("quantization_memory_ratio");
  if (!quantizes(block)) names.add("quantization_l2_ratio");
  if (!quantizes(block)) names.add("quantization_row_us");
  if (!quantizes(block)) names.add("quantization_step_us");
  if (block != Dtype::kFp8Block || !vllm) {
    for (const std::string_view floor :
         {"host_floor_us", "host_floor_deep_gemm_us", "host_odd_rows_us", "host_floor_flash_infer_us"}) {
      names.add(floor);
    }
  }
  return {names.names.data(), names.count};
}

}  // namespace roofcast
