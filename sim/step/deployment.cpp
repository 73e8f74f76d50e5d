#include "sim/step/deployment.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hw/kernels/attention_math.h"

namespace roofcast {
namespace {

/// What SGLang takes for weights and KV cache together where it is not told: all but room for metadata, the activations
/// of a prefill chunk (2048 tokens below 35 GiB, 4096 below 60, 8192 below 160, else 16384), CUDA graphs and
/// collectives. Source: sglang/srt/server_args.py, _handle_gpu_memory_settings (0.5).
double static_share(const Deployment& d) {
  const double gib = d.gpu.memory_capacity.in(kGibibyte);
  const double chunk = gib < 35.0 ? 2048.0 : gib < 60.0 ? 4096.0 : gib < 160.0 ? 8192.0 : 16384.0;
  const double reserve_mib =
      512.0 + 1.5 * chunk + 2.0 * d.engine.graphs.max_batch + 128.0 * d.sharding.tp * d.sharding.pp;
  return 1.0 - reserve_mib / (1024.0 * d.gpu.memory_capacity.in(kGibibyte));
}

AttentionKernel kernel_named(const std::string& name) {
  if (name == "naive") return AttentionKernel::kNaive;
  return name == "flash_unsplit" ? AttentionKernel::kUnsplit : AttentionKernel::kFlash;
}

}  // namespace

OperatorContext Deployment::operator_context() const {
  const double decoded =
      fidelity == Fidelity::kIdeal ? 0.0 : attention::absorbed_queries(gpu, efficiency.family, precision.kv_cache);
  return {.model = &model,
          .precision = precision,
          .sharding = sharding,
          .routing = routing,
          .moe_kernel = engine.moe_kernel,
          .block_products = engine.block_products,
          .rows_quantized_at_once = gpu.architecture == "blackwell" ? engine.rows_quantized_at_once : 0,
          .expanded_experts = engine.expanded_experts,
          .attention_kernel = kernel_named(engine.attention_kernel),
          .exchange = engine.expert_exchange,
          .rotary_in_attention = engine.kernels == KernelFamily::kTrtllm,
          .shared_query_heads = engine.shared_query_heads,
          .own_all_reduce = engine.own_all_reduce,
          .fp8_prompts = engine.fp8_latent_prompts,
          .flash_mla = engine.kernels == KernelFamily::kVllm && engine.sparse_attention == "flashmla",
          .indexer_format = gpu.peak(Dtype::kFp8) > FlopsPerSecond(0) ? Dtype::kFp8 : Dtype::kBf16,
          .decoded_tokens = decoded};
}

Bytes Deployment::reserved_memory() const {
  return engine.reserved_memory + (sharding.gpus() > 1 ? engine.collective_memory : Bytes(0));
}

Bytes Deployment::activations(double tokens, double logit_rows) const {
  return engine.compiled ? compiled_activation_bytes(model, sharding, tokens, logit_rows)
                         : activation_bytes(model, precision, sharding, tokens, logit_rows);
}

double MemoryPlan::max_batch(double tokens, double block) const {
  const Bytes each = layout.paged_bytes(tokens, std::max(block, 1.0));
  return each > Bytes(0) ? std::floor(std::max(cache.base(), 0.0) / each.base()) : 1e9;
}

/// Bisection over whole tokens: the bytes of a sequence never shrink with its length.
double MemoryPlan::max_context(double block) const {
  const double step = std::max(block, 1.0);
  const auto fits = [&](double tokens) { return layout.paged_bytes(tokens, step) <= cache; };
  if (!fits(1.0)) return 0.0;
  double low = 1.0, high = 2.0;
  while (fits(high) && high < 1e9) low = high, high *= 2.0;
  if (high >= 1e9) return high;  // a constant state: no limit
  while (high - low > 1.0) {
    const double middle = std::floor((low + high) / 2.0);
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

/// vLLM and SGLang take their fraction of the whole memory and subtract what is in use; TensorRT-LLM takes
/// its fraction of what is free once the model is loaded. The ideal plan is the lectures': capacity less weights.
MemoryPlan plan_memory(const Deployment& d) {
  MemoryPlan plan{.capacity = d.gpu.memory_capacity,
                  .weights = weight_bytes(d.model, d.precision, d.sharding),
                  .activations = Bytes(0),
                  .cache = Bytes(0),
                  .layout = cache_layout(d.model, d.precision, d.sharding),
                  .infeasible = std::nullopt};
  if (d.fidelity == Fidelity::kIdeal) {
    plan.cache = plan.capacity - plan.weights;
  } else {
    plan.activations = d.activations(d.engine.max_num_batched_tokens,
                                     std::min(d.engine.max_num_seqs, d.engine.max_num_batched_tokens));
    const Bytes used = plan.weights + plan.activations + d.reserved_memory();
    const double given = d.engine.gpu_memory_utilization, share = given > 0 ? given : static_share(d);
    plan.cache = d.engine.memory_rule == MemoryRule::kShareOfFree ? (plan.capacity - used) * share
                                                                  : plan.capacity * share - used;
  }
  if (plan.cache <= Bytes(0)) {
    const Bytes reserve = d.fidelity == Fidelity::kIdeal ? Bytes(0) : d.reserved_memory();
    plan.infeasible = Infeasible{fmt::format(
        "{} does not fit {}: weights {:.1f} GB, activations {:.1f} GB and {:.1f} GB reserved a GPU, of {:.1f} GB",
        d.model.name, d.gpu.name, plan.weights.in(kGigabyte), plan.activations.in(kGigabyte), reserve.in(kGigabyte),
        plan.capacity.in(kGigabyte))};
  }
  return plan;
}

}  // namespace roofcast
