#include "hw/kernels/gemm.h"

#include <algorithm>

#include "base/error.h"
#include "hw/efficiency.h"
#include "hw/gpu_spec.h"
#include "hw/kernel_rules.h"
#include "hw/kernels/gemm/gemm_kernel.h"
#include "hw/kernels/gemm/gemm_math.h"
#include "hw/kernels/gemm/tile_search.h"
#include "hw/kernels/idle_sms.h"

namespace roofcast {
namespace {

Bound bound_of(const TiledProduct& product, Seconds total) {
  const Seconds longer = std::max(product.compute, product.memory);
  if (longer * 2.0 < total) return Bound::kLatency;
  return product.compute > product.memory ? Bound::kCompute : Bound::kMemory;
}

/// The datasheet roofline: 2 m n k operations at the peak of the compute format, each matrix moved once.
Cost ideal_gemm(const GemmShape& shape, const GpuSpec& gpu) {
  SIM_CHECK(shape.m >= 1 && shape.n >= 1 && shape.k >= 1, "a GEMM needs at least one row, column and term");
  const auto compute = gpu.compute_dtype(shape.weights, shape.activations);
  SIM_CHECK(compute.has_value(), "the GPU cannot compute with this format");
  return roofline(Flops(2.0 * shape.m * shape.n * shape.k), product::traffic_of(shape).total(), gpu.peak(*compute),
                  gpu.memory_bandwidth);
}

bool is_wide(Dtype dtype) { return element_bits(dtype) >= 16.0; }

const MatmulKernel& named(const GpuSpec& gpu, Dtype block, const KernelRules& rules) {
  return static_cast<const MatmulKernel&>(rules.pick_product(gpu.architecture, block));
}

/// The constants of 16-bit GEMMs, which stand in for those of a format that was not measured.
const ConstantsBlock& wide_products(const GpuSpec& gpu, const Efficiency& efficiency) {
  return efficiency.block(named(gpu, Dtype::kBf16, efficiency.rules()), Dtype::kBf16);
}

}  // namespace

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

const MatmulKernel& gemm_kernel(const GemmShape& shape, const GpuSpec& gpu, const KernelRules& rules) {
  const Dtype block = gemm_block(shape.weights, shape.activations);
  if (shape.asked != nullptr && shape.asked->runs(gpu, block)) return *shape.asked;
  return named(gpu, block, rules);
}

const ConstantsBlock& gemm_block_in_force(const MatmulKernel& kernel, Dtype block, const GpuSpec& gpu,
                                          const Efficiency& efficiency) {
  const ConstantsBlock& own = efficiency.block(kernel, block);
  return own ? own : wide_products(gpu, efficiency);
}

GemmParameters gemm_constants(const MatmulKernel& kernel, Dtype block, const GpuSpec& gpu,
                              const Efficiency& efficiency) {
  if (const ConstantsBlock& own = efficiency.block(kernel, block)) return kernel.parameters(own);
  const MatmulKernel& wide = named(gpu, Dtype::kBf16, efficiency.rules());
  const ConstantsBlock& known = wide_products(gpu, efficiency);
  if (!known) return kernel.prior_beside(gpu, nullptr);
  const ConstantsBlock at_this_rate = carried_for(wide, known, block, gpu);
  return kernel.prior_beside(gpu, &wide.parameters(at_this_rate));
}

/// If weights are found in L2, a GEMM may be faster than the memory roofline.
Cost gemm_with(const GemmShape& shape, const MatmulKernel& kernel, const GemmParameters& constants, const GpuSpec& gpu,
               const GemmRun& run) {
  const Cost ideal = ideal_gemm(shape, gpu);
  const Dtype compute = *gpu.compute_dtype(shape.weights, shape.activations);
  const TiledProduct product = fastest_tiles(shape, kernel, constants, gpu, compute, run);
  Seconds time = product.time + constants.launch_us * kMicrosecond;
  if (shape.m <= 1) time -= std::max(0.0, constants.gemv_us) * kMicrosecond;
  if (run.weight_copies >= kColdWeights) time = std::max(time, ideal.time);
  Cost cost{.time = time, .flops = ideal.flops, .bytes = ideal.bytes, .bound = bound_of(product, time)};
  if (const double share = kernel.least_share_of_peak(); share > 0.0) {
    const Seconds least = cost.flops / (gpu.peak(compute) * share);
    if (least > cost.time) cost.bound = Bound::kCompute;
    cost.time = std::max(cost.time, least);
  }
  return cost;
}

Cost gemm(const GemmShape& shape, const Machine& machine) {
  SIM_CHECK(machine.gpu != nullptr, "a GEMM runs on a GPU");
  const GpuSpec& gpu = *machine.gpu;
  if (machine.fidelity == Fidelity::kIdeal) return ideal_gemm(shape, gpu);
  SIM_CHECK(machine.efficiency != nullptr, "a calibrated time needs constants");
  const MatmulKernel& kernel = gemm_kernel(shape, gpu, machine.efficiency->rules());
  const Dtype block = gemm_block(shape.weights, shape.activations);
  const GemmParameters constants = gemm_constants(kernel, block, gpu, *machine.efficiency);
  return with_sms_to_spare(gemm_block_in_force(kernel, block, gpu, *machine.efficiency), gpu,
                           [&](const GpuSpec& used) { return gemm_with(shape, kernel, constants, used); });
}

Evidence gemm_evidence(const GemmShape& shape, const GpuSpec& gpu, const Efficiency& efficiency) {
  const MatmulKernel& kernel = gemm_kernel(shape, gpu, efficiency.rules());
  const Dtype block = gemm_block(shape.weights, shape.activations);
  if (const ConstantsBlock& own = efficiency.block(kernel, block)) return {own.record, 0.0};
  const ConstantsBlock& wide = wide_products(gpu, efficiency);
  return wide ? Evidence{wide.record, kernel.facts().unexplained.lent} : Evidence{};
}

}  // namespace roofcast
