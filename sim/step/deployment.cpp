#include "sim/step/deployment.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "hw/efficiency.h"
#include "hw/kernel_rules.h"
#include "hw/kernels/attention_math.h"
#include "hw/kernels/flash_generations.h"
#include "hw/rooflines.h"
#include "sim/model/encoder.h"
#include "sim/model/feed_forward_model.h"
#include "sim/model/mixer_model.h"
#include "sim/step/expert_overlap.h"
#include "sim/step/memory_sum.h"
#include "sim/step/region.h"

namespace roofcast {
namespace {

/// SGLang's default fraction for weights and KV cache: everything except metadata, the activations of a prefill chunk,
/// CUDA graphs and collectives, which take at least 10 GiB on a GPU with 60 GiB or more. Source:
/// sglang/srt/server_args.py, _handle_gpu_memory_settings (0.5).
double static_share(const Deployment& d) {
  const double gib = d.gpu.memory_capacity.in(kGibibyte), graphs = d.engine.graphs.max_batch;
  const double copies = d.sharding.attention_dp, tokens = copies * d.engine.max_num_batched_tokens;
  double reserve_mib =
      512.0 + 1.5 * std::max(tokens, 2048.0) + 2.0 * graphs + 128.0 * d.sharding.tp * copies * d.sharding.pp;
  if (copies > 1) reserve_mib += copies * graphs * (graphs > 300 ? 4.5 : 3.0);
  if (gib > 60.0) reserve_mib = std::max(reserve_mib, 10.0 * 1024.0);
  return std::max(0.0, 1.0 - reserve_mib / (1024.0 * gib));
}

/// The fraction in the engine's memory rule.
double share_of(const Deployment& d) {
  return d.engine.gpu_memory_utilization > 0 ? d.engine.gpu_memory_utilization : static_share(d);
}

/// MAMBA_CACHE_SIZE_MAX_RUNNING_REQUESTS_RATIO of SGLang.
constexpr double kSlotsPerSequence = 3;

/// Memory that TensorRT-LLM holds beyond the sharded weights for models with latent attention: the whole embedding on
/// every rank (tensorrt_llm/_torch/models/modeling_deepseekv3.py), a second copy of the keys' up-projection for
/// absorbed decode and, on Blackwell with block scales, of the keys' and values' in 16 bit
/// (_torch/modules/attention.py, k_b_proj_trans, k_b_proj_trans_dequant).
Bytes copied_weights(const Deployment& d) {
  if (!d.kernel_rules().engine().copies_absorbed_weights || d.engine.compiled) return Bytes(0);
  const bool dequantized =
      d.gpu.architecture == Architecture::kBlackwell && d.precision.attention_weights == Dtype::kFp8Block;
  double bytes = 0;
  for (const LayerKind& kind : d.model.layers) {
    const auto a = model_of(kind.mixer)->absorbed();
    if (!a) continue;
    const double each = kind.count * heads_of(a->heads, d.sharding) * a->latent_dim / d.sharding.pp;
    bytes += each * a->nope_dim * bytes_per_weight(WeightRole::kMixer, d.precision);
    if (dequantized) bytes += each * (a->nope_dim + a->value_dim) * 2.0;
  }
  if (bytes <= 0) return Bytes(0);
  const double elsewhere = d.model.vocabulary - std::ceil(d.model.vocabulary / d.sharding.tp);
  return Bytes(bytes + elsewhere * d.model.embedding_dim * bytes_per_weight(WeightRole::kHead, d.precision));
}

/// vLLM gives the blocks of every layer the same memory: attention blocks hold the smallest multiple of 16 tokens that
/// is no smaller than a layer's state (vllm/platforms/interface.py, update_block_size_for_backend): 528 tokens for
/// Qwen3.5-4B (github.com/vllm-project/vllm/issues/40696). 0 if no layer keeps every token, or none has a state.
std::int64_t state_block(const Deployment& d) {
  constexpr double kStep = 16;
  double state = 0, token = std::numeric_limits<double>::infinity();
  for (const LayerKind& kind : d.model.layers) {
    const LayerCache cache = model_of(kind.mixer)->cache(d.precision, d.sharding);
    state = std::max(state, cache.state);
    if (cache.all_tokens > 0) token = std::min(token, cache.all_tokens);
  }
  return static_cast<std::int64_t>(kStep * std::ceil(state / (kStep * token)));
}

/// The largest message for which one kernel does all-reduce and norm. TensorRT-LLM does this wherever its own
/// all-reduce kernel runs, except in dense models with a hidden size up to 4096, for accuracy (modeling_llama.py,
/// enable_fusion), and in models with query and key norms (modeling_qwen3.py has no fusion). vLLM does it up to a size
/// that depends on the ranks (vllm/config/compilation.py, default_fi_allreduce_fusion_max_size_mb, for compute
/// capabilities 9.0 and 10.0), in one pipeline stage. Neither does with attention-DP.
Bytes largest_fused(const Deployment& d) {
  const EngineSpec& e = d.engine;
  const int ranks = d.sharding.tp;
  const Group group{ranks, std::min(ranks, d.gpu.node.fabric_domain)};
  if (!e.fused_all_reduce || !e.own_all_reduce || d.fidelity == Fidelity::kIdeal || d.sharding.attention_dp > 1 ||
      !fuses_all_reduce(group, d.gpu)) {
    return Bytes(0);
  }
  if (!d.kernel_rules().engine().fuses_by_own_all_reduce) {
    if (d.sharding.pp > 1) return Bytes(0);
    const double four = d.gpu.architecture == Architecture::kHopper ? 2.0 : 32.0;
    return kMebibyte * (ranks > 4 ? 1.0 : ranks > 2 ? four : 64.0);
  }
  const auto routed = [](const LayerKind& kind) { return facts_of(kind.feed_forward).experts > 0; };
  const auto norms_keys = [](const LayerKind& kind) { return facts_of(kind.mixer).norms_keys; };
  const auto& layers = d.model.layers;
  if (std::none_of(layers.begin(), layers.end(), routed) &&
      (d.model.hidden <= 4096 || std::any_of(layers.begin(), layers.end(), norms_keys))) {
    return Bytes(0);
  }
  const auto* own = d.efficiency->find(custom_all_reduce_kernel(), Dtype::kBf16);
  const double limit = (own != nullptr ? own->value : CustomAllReduceParameters{}).size_limit_mb;
  return limit > 0.0 ? Bytes(1e6 * limit) : Bytes(std::numeric_limits<double>::infinity());
}

}  // namespace

const KernelRules& Deployment::kernel_rules() const { return efficiency->rules(); }
const std::string& Deployment::carried_over_from() const { return efficiency->carried_over_from; }

const RooflineBackend* Deployment::roofline() const {
  return engine.rooflines ? &engine.rooflines->on(gpu.architecture) : nullptr;
}

Machine Deployment::machine() const {
  return {
      .gpu = &gpu, .efficiency = efficiency.get(), .fidelity = fidelity, .roofline = roofline(), .aiter = engine.aiter};
}

AttentionKernel Deployment::attention_kernel() const {
  const std::string& name = engine.attention_kernel;
  if (name == "naive") return AttentionKernel::kNaive;
  if (name == "flash_split") return AttentionKernel::kSplit;
  for (const AttentionKernel kernel : {AttentionKernel::kFlash1, AttentionKernel::kFlash2, AttentionKernel::kFlash3}) {
    if (generation_of(kernel)->name == name) return kernel;
  }
  return name == "flash_unsplit" ? AttentionKernel::kUnsplit : AttentionKernel::kFlash;
}

OperatorContext Deployment::operator_context() const {
  const double decoded = fidelity == Fidelity::kIdeal ? 0.0 : absorbed_queries(gpu, precision.kv_cache, kernel_rules());
  const EngineKernels& kernels = kernel_rules().engine();
  const bool blackwell = gpu.architecture == Architecture::kBlackwell;
  OperatorContext c;
  static_cast<OperatorSettings&>(c) = engine;
  c.model = &model;
  c.precision = precision;
  c.sharding = sharding;
  c.routing = routing;
  if (!blackwell) c.rows_quantized_at_once = 0;
  c.attention_kernel = attention_kernel();
  c.exchange_by_mode = kernels.exchange_by_mode;
  c.rotary_in_attention = kernels.rotary_in_attention;
  c.attention_writes_nvfp4 = kernels.attention_writes_nvfp4 && blackwell && precision.kv_cache == Dtype::kFp8;
  c.fused_all_reduce = largest_fused(*this);
  c.sorts_logits = engine.samples_top_p && engine.sorts_for_top_p;
  c.flash_mla = kernels.flash_mla && engine.sparse_attention == "flashmla";
  c.indexer_format = gpu.peak(Dtype::kFp8) > FlopsPerSecond(0) ? Dtype::kFp8 : Dtype::kBf16;
  c.staged = may_overlap(*this);
  c.decoded_tokens = decoded;
  return c;
}

Bytes Deployment::reserved_memory() const {
  return engine.reserved_memory + (sharding.gpus() > 1 ? engine.collective_memory : Bytes(0));
}

/// Bytes per logit while PyTorch sorts all of them for top-p: 16 bit, fp32, sorted, 8-byte indices, and pairs of index
/// and row before and after the sort with a copy of the keys. vLLM profiles with max_num_seqs requests. Source:
/// pytorch/pytorch, aten/src/ATen/native/cuda/Sort.cu (segmented_sort_pairs_by_full_sort);
/// vllm/v1/worker/gpu_model_runner.py (_dummy_sampler_run).
constexpr double kSortedLogitMemory = 2.0 + 4.0 + 4.0 + 8.0 + 2 * 8.0 + 4.0;

Bytes Deployment::activations(double tokens, double logit_rows, double context) const {
  const bool naive = engine.attention_kernel == "naive";
  if (model.encoder_only) logit_rows = 0;
  const Bytes scores = naive ? score_bytes(model, sharding, tokens, context) : Bytes(0);
  if (model.encoder)
    return std::max(activation_bytes(model, precision, sharding, std::min(tokens, logit_rows), logit_rows),
                    activation_bytes(*model.encoder, precision, sharding, tokens, 0)) +
           scores;
  if (engine.compiled) return compiled_activation_bytes(model, sharding, tokens, logit_rows) + scores;
  const Bytes forward =
      activation_bytes(model, precision, sharding, tokens, logit_rows, engine.keeps_expert_buffers) + scores;
  const double sorted = engine.sorts_for_top_p ? logit_rows * model.vocabulary * kSortedLogitMemory : 0.0;
  return std::max(forward, Bytes(sorted));
}

int Deployment::max_sequences() const {
  const double all = std::min<double>(engine.max_num_seqs, memory.max_sequences) * sharding.attention_dp;
  return static_cast<int>(std::min(all, 1e9));
}

void MemoryPlan::set_states_apart(const EngineSpec& engine) {
  cache += states;
  states = Bytes(0);
  const Bytes state = layout.state_per_sequence;
  if (engine.state_memory_ratio <= 0 || state <= Bytes(0) || cache <= Bytes(0)) return;
  const Bytes most = cache * (engine.state_memory_ratio / (1 + engine.state_memory_ratio));
  states = engine.prefix_caching ? most : std::min(most, state * static_cast<double>(engine.max_num_seqs));
  max_sequences = std::floor(states / state / (engine.prefix_caching ? kSlotsPerSequence : 1));
  cache -= states;
  if (max_sequences < 1 && !infeasible)
    infeasible =
        Infeasible{fmt::format("{:.3f} GB set aside for the states of recurrent layers have no room for one "
                               "sequence, which takes {:.3f}",
                               states.in(kGigabyte), state.in(kGigabyte))};
}

CacheLayout MemoryPlan::pooled() const {
  CacheLayout blocks = layout;
  if (states > Bytes(0)) blocks.state_per_sequence = Bytes(0);
  return blocks;
}

double MemoryPlan::max_batch(double tokens, double block) const {
  const Bytes each = pooled().paged_bytes(tokens, std::max(block, 1.0));
  return each > Bytes(0) ? std::min(max_sequences, std::floor(std::max(cache.base(), 0.0) / each.base()))
                         : max_sequences;
}

/// Bisection over whole tokens: the bytes of a sequence never shrink as it grows.
double MemoryPlan::max_context(double block) const {
  if (max_sequences < 1) return 0.0;
  const double step = std::max(block, 1.0);
  const CacheLayout blocks = pooled();
  const auto fits = [&](double tokens) { return blocks.paged_bytes(tokens, step) <= cache; };
  if (!fits(1.0)) return 0.0;
  double low = 1.0, high = 2.0;
  while (fits(high) && high < 1e9) low = high, high *= 2.0;
  if (high >= 1e9) return high;  // constant state: no limit
  while (high - low > 1.0) {
    const double middle = std::floor((low + high) / 2.0);
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

/// Embeddings that wait for the language model, as many as a step has tokens or the largest item has
/// (vllm/v1/core/encoder_cache_manager.py, compute_mm_encoder_budget), and the buffers of the encoder.
Bytes encoder_bytes(const Deployment& d) {
  double outputs = d.media.empty() ? 0.0 : d.engine.max_num_batched_tokens;
  Bytes buffers{};
  for (const EncoderWork& work : d.media) {
    const auto& encoder = work.sound ? d.model.encoders.sounds : d.model.encoders.pictures;
    outputs = std::max(outputs, work.outputs);
    buffers = std::max(buffers, encoder_activations(*encoder, work, d.sharding));
  }
  return Bytes(outputs * d.model.hidden * 2.0) + buffers;
}

/// States the excess term by term, with enough digits to show it.
std::string memory_sum(const Deployment& d, const MemoryPlan& plan, Bytes cache, Bytes buffers) {
  const double share = share_of(d);
  std::vector<std::pair<std::string, Bytes>> terms{{"weights", plan.weights - plan.adapters}};
  if (plan.adapters > Bytes(0)) terms.emplace_back("adapters", plan.adapters);
  const EngineSpec& e = d.engine;
  const Bytes reserved = d.fidelity == Fidelity::kIdeal ? Bytes(0) : d.reserved_memory();
  const bool set_apart =
      e.memory_rule == MemoryRule::kStaticShare &&
      (plan.capacity - reserved) * share - plan.weights <= plan.capacity - reserved - plan.weights - plan.activations;
  if (d.fidelity != Fidelity::kIdeal) {
    if (!set_apart) terms.emplace_back("activations", plan.activations);
    terms.emplace_back("reserved", reserved);
    if (set_apart)
      terms.emplace_back(fmt::format("{} outside its static share of {:.3f}", e.name, share),
                         (plan.capacity - reserved) * (1.0 - share));
    if (e.memory_rule == MemoryRule::kShareOfTotal)
      terms.emplace_back(fmt::format("left free by gpu_memory_utilization {}", share), plan.capacity * (1.0 - share));
  }
  if (cache > Bytes(0)) {
    if (d.fidelity != Fidelity::kIdeal && e.memory_rule == MemoryRule::kShareOfFree)
      terms.emplace_back(fmt::format("left free by gpu_memory_utilization {}", share),
                         (plan.capacity - plan.weights - plan.activations - reserved) * (1.0 - share));
    if (plan.states > Bytes(0)) terms.emplace_back("set aside for states", plan.states);
    terms.emplace_back("KV cache", cache);
    if (buffers > Bytes(0)) terms.emplace_back("more activations", buffers);
  }
  Bytes sum{};
  for (const auto& [name, bytes] : terms) sum += bytes;
  int digits = 1;
  const auto text = [&](Bytes b) { return fmt::format("{:.{}f} GB", b.in(kGigabyte), digits); };
  while (digits < 6 && text(sum) == text(plan.capacity)) ++digits;
  std::string out;
  for (const auto& [name, bytes] : terms) out += fmt::format("{}{} {}", out.empty() ? "" : " + ", name, text(bytes));
  return fmt::format("{} = {} per GPU, of {}", out, text(sum), text(plan.capacity));
}

/// Sequences that fit at the same time with contiguous caches, each as long as the longest request.
double regions(const Deployment& d, const MemoryPlan& plan) {
  const Bytes each = plan.pooled().sequence_bytes(region_tokens(d));
  return each > Bytes(0) ? std::floor(std::max(plan.cache.base(), 0.0) / each.base()) : plan.max_sequences;
}

/// vLLM takes its fraction of the total memory and subtracts what is in use. SGLang takes its fraction of the memory
/// that is free before loading and subtracts only the weights; the rest is for activations (model_runner.py,
/// profile_max_num_token). TensorRT-LLM takes its fraction of what is free after loading. The ideal plan is that of the
/// lectures: capacity minus weights.
MemoryPlan plan_memory(const Deployment& d) {
  MemoryPlan plan{.capacity = d.gpu.memory_capacity,
                  .weights = weight_bytes(d.model, d.precision, d.sharding),
                  .activations = Bytes(0),
                  .cache = Bytes(0),
                  .layout = cache_layout(d.model, d.precision, d.sharding),
                  .infeasible = std::nullopt};
  plan.state_block = state_block(d);
  if (d.adapters) {
    plan.adapters = adapter_bytes(d.model, *d.adapters, d.sharding, d.adapters->slot_rank) * d.adapters->slots;
    plan.weights += plan.adapters;
  }
  if (d.fidelity == Fidelity::kIdeal) {
    plan.cache = plan.capacity - plan.weights;
  } else {
    plan.copied_weights = copied_weights(d);
    plan.weights += plan.copied_weights;
    const double longest = d.engine.max_model_len > 0 ? d.engine.max_model_len : d.model.max_context;
    const double tokens = d.engine.max_num_batched_tokens;
    plan.activations = d.activations(tokens, std::min(d.engine.max_num_seqs, d.engine.max_num_batched_tokens),
                                     longest > 0 ? std::min(tokens, longest) : tokens);
    plan.encoders = encoder_bytes(d);
    plan.activations += plan.encoders;
    const Bytes used = plan.weights + plan.activations + d.reserved_memory();
    const double share = share_of(d);
    switch (d.engine.memory_rule) {
      case MemoryRule::kShareOfTotal:
        plan.cache = plan.capacity * share - used;
        break;
      case MemoryRule::kShareOfFree:
        plan.cache = (plan.capacity - used) * share;
        break;
      case MemoryRule::kStaticShare:
        plan.cache = std::min((plan.capacity - d.reserved_memory()) * share - plan.weights, plan.capacity - used);
        break;
    }
    plan.set_states_apart(d.engine);
    if (d.engine.block_size == 0 && d.engine.kv_cache)
      plan.max_sequences = std::min(plan.max_sequences, regions(d, plan));
  }
  if (plan.cache <= Bytes(0)) {
    plan.infeasible = Infeasible{fmt::format("{} does not fit {}: {}", d.model.name, d.gpu.name, memory_sum(d, plan))};
  } else if (plan.max_sequences < 1 && d.engine.block_size == 0 && d.engine.kv_cache) {
    plan.infeasible = Infeasible{fmt::format(
        "{} does not fit {}: without blocks each sequence takes a region of {:.0f} tokens, the longest request "
        "(engine.max_model_len); one takes {:.1f} GB, and {:.1f} GB are free",
        d.model.name, d.gpu.name, region_tokens(d), plan.pooled().sequence_bytes(region_tokens(d)).in(kGigabyte),
        plan.cache.in(kGigabyte))};
  }
  return plan;
}

}  // namespace roofcast
