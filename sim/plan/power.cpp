#include "sim/plan/power.h"

#include <algorithm>
#include <limits>

#include "hw/kernel_rules.h"
#include "hw/kernels/prefill/prefill_kernel.h"
#include "sim/model/mixer_model.h"
#include "sim/step/deployment.h"

namespace roofcast {

namespace {

/// Whether some layer has an indexer.
bool has_indexer(const ModelSpec& model) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const LayerKind& kind) { return facts_of(kind.mixer).indexer; });
}

/// The format of attention's products.
Dtype attention_products(const Deployment& d) {
  const AttentionHeads heads{.heads = 1, .kv_heads = 1, .kv = d.precision.kv_cache};
  return prefill_products(heads, prefill_kernel({.query_len = 1000}, heads, d.gpu, d.kernel_rules()), d.gpu);
}

bool attends(const ModelSpec& model) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const LayerKind& kind) { return facts_of(kind.mixer).cache != TokenCache::kNothing; });
}

/// The faster of the peaks for products with weights and for 16 bit.
FlopsPerSecond weights_peak(const Deployment& d) {
  const Precision& p = d.precision;
  FlopsPerSecond fastest = std::max(d.gpu.peak(Dtype::kBf16), d.gpu.peak(Dtype::kFp16));
  for (Dtype weights : {p.weights, p.attention_weights, p.expert_weights}) {
    if (const auto compute = d.gpu.compute_dtype(weights, p.activations))
      fastest = std::max(fastest, d.gpu.peak(*compute));
  }
  return fastest;
}

FlopsPerSecond fastest_peak(const Deployment& d) {
  FlopsPerSecond fastest = weights_peak(d);
  if (d.fidelity == Fidelity::kCalibrated && attends(d.model))
    fastest = std::max(fastest, d.gpu.peak(attention_products(d)));
  return has_indexer(d.model) ? std::max(fastest, d.gpu.peak(Dtype::kFp8)) : fastest;
}

}  // namespace

Utilization utilization_of(const Deployment& d, Seconds time, Flops flops, Bytes bytes) {
  if (time <= Seconds(0)) return {};
  return {.compute = flops / time / fastest_peak(d), .memory = bytes / time / d.gpu.memory_bandwidth};
}

Utilization drawn_by(const Deployment& d, Seconds time, Flops flops, Bytes bytes) {
  if (time <= Seconds(0)) return {};
  return {.compute = std::min(1.0, flops / time / weights_peak(d)), .memory = bytes / time / d.gpu.memory_bandwidth};
}

Watts power_of(const GpuSpec& gpu, const Utilization& u) {
  if (!power_known(gpu)) return {std::numeric_limits<double>::quiet_NaN()};
  return {gpu.idle_power.value + (gpu.board_power.value - gpu.idle_power.value) * kPowerCurve.share(u)};
}

}  // namespace roofcast
