#include "hw/kernels/adapter.h"

#include <algorithm>

#include "base/error.h"
#include "hw/gpu_spec.h"
#include "hw/kernels/elementwise.h"

namespace roofcast {
namespace {

/// Minimum time of one of the two kernels in a CUDA graph: vLLM's expand of q, k and v for up to 16 rows
/// (github.com/vllm-project/vllm/pull/32425). Punica's kernels took 18 us including their launches (arXiv:2310.18547,
/// figure 8).
constexpr double kKernelSeconds = 10e-6;

}  // namespace

/// With T tokens, D adapters of rank r and s slices:
///   flops = 2 T r (s k + n)
///   bytes = 2 D r (s k + n)                  the matrices of every adapter once, 16 bit
///         + T (2 k + 4 s r)                  shrink: reads inputs, writes 32-bit sums
///         + T (4 s r + 4 n)                  expand: reads these sums, reads and writes outputs
/// The kernels are bound by memory: about r FLOPs per byte, far below the ridge of the tensor cores. Source: SGMV of
/// Punica (arXiv:2310.18547, section 4), vllm/lora/ops/triton_ops/lora_shrink_op.py and lora_expand_op.py.
Cost adapter_product(const AdapterShape& s, const Machine& machine) {
  SIM_CHECK(s.tokens >= 0 && s.adapters >= 0 && s.rank > 0, "an adapter has a rank");
  const double weights = s.rank * (s.slices * s.k + s.n);
  const Flops flops(2.0 * s.tokens * weights);
  const Bytes bytes(2.0 * s.adapters * weights + s.tokens * (2.0 * s.k + 8.0 * s.slices * s.rank + 4.0 * s.n));
  const Cost ideal = roofline(flops, bytes, machine.gpu->peak(Dtype::kBf16), machine.gpu->memory_bandwidth);
  if (machine.fidelity == Fidelity::kIdeal) return ideal;
  Cost cost = elementwise(bytes, Flops(0), 2.0, machine);
  cost.flops = flops;
  const Seconds least(2.0 * kKernelSeconds);
  if (least > cost.time) cost.bound = Bound::kLatency;
  cost.time = std::max({cost.time, least, ideal.time});
  return cost;
}

}  // namespace roofcast
