#pragma once
#include "hw/cost.h"
#include "hw/dtype.h"

namespace roofcast {

struct Evidence;
class KernelRules;
class MatmulKernel;

/// C[m,n] = A[m,k] * B[k,n]; B holds the weights.
struct GemmShape {
  double m = 0, n = 0, k = 0;
  Dtype weights = Dtype::kBf16;
  Dtype activations = Dtype::kBf16;
  double output_bytes = 2.0;  ///< of one element of C
  Scales weight_scales{};     ///< group 0: the format's native scales
  bool row_scales = true;     ///< activations carry a scale per row or block, computed at run time; else one per tensor
  const MatmulKernel* asked = nullptr;  ///< the kernel that the engine was told to take, where it can run
};

/// The format that a product's constants are kept under: 16-bit and wider operands share those of bf16. Weights that
/// are unpacked to 16-bit activations go through one kind of kernel whatever their width: int4.
Dtype gemm_block(Dtype weights, Dtype activations);

/// The kernel that runs the product: the one asked for, else the one that the rules name.
const MatmulKernel& gemm_kernel(const GemmShape& shape, const GpuSpec& gpu, const KernelRules& rules);

/// Source: docs/equations-gemm.md. SIM_CHECK on shapes below one; a format that the GPU cannot compute with is
/// refused earlier, where the deployment is read.
Cost gemm(const GemmShape& shape, const Machine& machine);
/// What is known of the error of that time.
Evidence gemm_evidence(const GemmShape& shape, const GpuSpec& gpu, const Efficiency& efficiency);

}  // namespace roofcast
