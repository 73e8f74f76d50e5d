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
  Scales weight_scales{};     ///< group_size 0: the format's native scales
  bool row_scales = true;     ///< activations have a scale per row or block, computed at run time; else one per tensor
  const MatmulKernel* asked = nullptr;  ///< the kernel that the engine is configured to use where it can run
};

/// The format under which a GEMM's constants are stored. 16-bit and wider operands share those of bf16. Weights that
/// are unpacked to 16-bit activations use the same kernels whatever their width: int4.
Dtype gemm_block(Dtype weights, Dtype activations);

/// The kernel of the GEMM: the requested one if there is one and it can run, else the one chosen by the rules.
const MatmulKernel& gemm_kernel(const GemmShape& shape, const GpuSpec& gpu, const KernelRules& rules);

/// Source: docs/equations-gemm.md. Shapes below one are a SIM_CHECK failure. Formats that the GPU cannot compute in are
/// rejected earlier, when the deployment is read.
Cost gemm(const GemmShape& shape, const Machine& machine);
/// The fit and its error behind that time.
Evidence gemm_evidence(const GemmShape& shape, const GpuSpec& gpu, const Efficiency& efficiency);

}  // namespace roofcast
