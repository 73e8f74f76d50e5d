#include "reports/machine_json.h"

#include <algorithm>

#include "hw/efficiency.h"
#include "hw/kernel_rules.h"
#include "hw/kernels/gemm/gemm_kernel.h"
#include "sim/step/region.h"

namespace roofcast::reports {

nlohmann::ordered_json machine_json(const Deployment& d) {
  const Dtype compute = d.gpu.compute_dtype(d.precision.weights, d.precision.activations).value_or(Dtype::kBf16);
  const FlopsPerSecond peak = d.gpu.peak(compute);
  nlohmann::ordered_json out{{"gpus", d.sharding.gpus()},
                             {"compute_dtype", name_of(compute)},
                             {"dense_flop_per_s", peak.base()},
                             {"memory_bytes_per_s", d.gpu.memory_bandwidth.base()}};
  if (d.fidelity == Fidelity::kIdeal) return out;
  const Dtype block = gemm_block(d.precision.weights, d.precision.activations);
  const MatmulKernel& kernel =
      gemm_kernel({.weights = d.precision.weights, .activations = d.precision.activations}, d.gpu, d.kernel_rules());
  const ConstantsBlock& measured = d.efficiency->block(kernel, block);
  const GemmParameters p = measured ? kernel.parameters(measured) : kernel.prior_beside(d.gpu, nullptr);
  out["calibrated_flop_per_s"] = peak.base() * p.compute_efficiency * p.sustained_clock;
  out["calibrated_memory_bytes_per_s"] = d.gpu.memory_bandwidth.base() * p.bandwidth_efficiency;
  return out;
}

nlohmann::ordered_json memory_by_context_json(const Deployment& d, double batch, double context) {
  const double room =
      d.memory.max_batch(context, d.engine.block_size) >= 1 ? d.memory.max_context(d.engine.block_size) / batch : 0;
  const double longest = std::max(2 * context, std::min(room * 1.35, 16 * context));
  const CacheLayout& layout = d.memory.layout;
  const auto held = [&](double tokens) {
    return layout.sequence_bytes(d.engine.block_size > 0 ? tokens : std::max(tokens, region_tokens(d)));
  };
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  constexpr int kSteps = 24;
  for (int i = 0; i <= kSteps; ++i) {
    const double tokens = longest * i / kSteps;
    out.push_back({{"context_tokens", tokens}, {"kv_cache_bytes", batch * held(tokens).base()}});
  }
  return out;
}

}  // namespace roofcast::reports
