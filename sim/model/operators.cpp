// Operators that see only tokens: everything of a step but attention and the state scans.

#include <algorithm>

#include "sim/model/operator_list.h"

namespace roofcast {
namespace {

constexpr double kHalf = 2.0;  // bytes of a 16-bit value

/// One pass of `tokens` rows through the layers.
class TokenPass {
 public:
  TokenPass(const OperatorContext& context, double tokens, double group_tokens)
      : context_(context),
        model_(*context.model),
        sharding_(context.sharding),
        tokens_(tokens),
        group_tokens_(group_tokens),
        list_(context) {}

  void embedding();
  void layer(const LayerKind& kind);
  void pipeline();
  void head();
  std::vector<Operator> take() { return list_.take(); }

 private:
  void projections(const LayerKind& kind);
  void around_mixer(const Mixer& mixer, double count);
  void around(const GroupedAttention& a, double count);
  void around(const LatentAttention& a, double count);
  void indexer(double heads, double dim, double count);
  void around(const StateLayer& a, double count);
  void experts(const ExpertFeedForward& f, double count);
  void after_feed_forward(const LayerKind& kind);
  bool fuses(const LayerKind& kind) const;
  void reduce(const LayerKind& kind);
  void activation(const std::string& name, double inter, bool gated, double count, double written = 1.0);
  double quantized_width(const LayerKind& kind) const;
  bool comes_in_nvfp4(const LayerKind& kind, const WeightMatrix& matrix) const;
  double message() const { return tokens_ * model_.hidden * kHalf; }

  const OperatorContext& context_;
  const ModelSpec& model_;
  const Sharding& sharding_;
  double tokens_;        ///< of the fullest rank
  double group_tokens_;  ///< of all attention-DP ranks
  OperatorList list_;
};

/// Rows of the table are read and written; ranks hold a share of the vocabulary each and add up.
void TokenPass::embedding() {
  const double width = model_.embedding_dim + (model_.position_embeddings > 0 ? model_.hidden : 0.0);
  list_.stream("embedding", 1,
               tokens_ * (width * bytes_per_weight(WeightRole::kHead, context_.precision) + model_.hidden * kHalf));
  if (model_.embedding_dim != model_.hidden) {
    list_.product("embedding_proj", 1, tokens_, model_.embedding_dim, model_.hidden, WeightRole::kOther);
  }
  list_.exchange(Collective::kAllReduce, "all_reduce", 1, message(), sharding_.tp);
}

/// Partial sums after the mixer and after the feed-forward; a parallel block has one for both.
bool reduces_mixer(const LayerKind& kind) {
  return !std::holds_alternative<NoMixer>(kind.mixer) && !kind.parallel_block;
}
bool reduces_feed_forward(const LayerKind& kind) {
  return !std::holds_alternative<NoFeedForward>(kind.feed_forward) || kind.parallel_block;
}

/// The norm after an all-reduce joins it: the mixer's that before the feed-forward, the feed-forward's that of the next
/// layer (the first layer's own counts for the final one).
bool TokenPass::fuses(const LayerKind& kind) const {
  return kind.streams <= 1 && Bytes(message()) <= context_.fused_all_reduce;
}

void TokenPass::reduce(const LayerKind& kind) {
  if (!fuses(kind)) {
    return list_.exchange(Collective::kAllReduce, "all_reduce", kind.count, message(), sharding_.tp);
  }
  list_.add("all_reduce_norm", kind.count,
            CollectiveWork{Collective::kAllReduce, Bytes(message()), sharding_.tp, false, true});
}

/// Of 16 bit, what the kernel before a dense block's product writes: vLLM's compiler quantizes in it where scales are
/// known beforehand (github.com/vllm-project/vllm/pull/19830).
double TokenPass::quantized_width(const LayerKind& kind) const {
  const Precision& p = context_.precision;
  const bool dense = std::holds_alternative<DenseFeedForward>(kind.feed_forward);
  if (!dense || kind.streams > 1 || kind.norms > 2) return 1.0;
  if (!context_.compiled_quantization || !p.static_activations) return 1.0;
  return element_bits(activations_for(WeightRole::kFeedForward, p)) / 16.0;
}

/// A norm reads the residual and the block's output, writes their sum and its norm (fused add + norm), the latter
/// perhaps quantized. With n residual streams: read n and write the block's input, then read n and the block's output
/// and write n (Xie et al. 2025, arXiv:2512.24880, fused kernels), 3 n + 2 widths.
void TokenPass::layer(const LayerKind& kind) {
  const double count = kind.count;
  const double widths = kind.streams > 1 ? 3.0 * kind.streams + 2.0 : 3.0 + quantized_width(kind);
  const double fused = fuses(kind) ? reduces_mixer(kind) + reduces_feed_forward(kind) : 0.0;
  list_.stream("norm", count * std::max(0.0, kind.norms - fused), tokens_ * model_.hidden * widths * kHalf,
               kind.streams > 1 ? 2.0 : 1.0);
  projections(kind);
  around_mixer(kind.mixer, count);
  if (reduces_mixer(kind)) reduce(kind);
  if (const auto* dense = std::get_if<DenseFeedForward>(&kind.feed_forward)) {
    activation("activation", dense->inter, dense->gated, count, quantized_width(kind));
  } else if (const auto* routed = std::get_if<ExpertFeedForward>(&kind.feed_forward)) {
    experts(*routed, count);
  }
  after_feed_forward(kind);
}

/// Whether the kernel before a product writes its input in nvfp4: the one that reduces and norms, where one product of
/// a dense layer reads it (TensorRT-LLM: AllReduceFusionOp::RESIDUAL_RMS_NORM_QUANT_NVFP4 of modeling_llama.py; vLLM:
/// kARResidualRMSNormFP4Quant of its compiler's all-reduce fusion), and under TensorRT-LLM attention over an fp8 cache
/// (support_nvfp4_output of its attention_backend/trtllm.py).
bool TokenPass::comes_in_nvfp4(const LayerKind& kind, const WeightMatrix& matrix) const {
  const auto* attention = std::get_if<GroupedAttention>(&kind.mixer);
  if (!attention || dtype_of(matrix.role, context_.precision) != Dtype::kNvfp4) return false;
  if (matrix.name == "o_proj") return context_.attention_writes_nvfp4 && !attention->output_gate;
  const bool reads_norm = matrix.name == "qkv_proj" || matrix.name == "gate_up_proj";
  return reads_norm && fuses(kind) && std::holds_alternative<DenseFeedForward>(kind.feed_forward);
}

void TokenPass::projections(const LayerKind& kind) {
  for (const WeightMatrix& matrix : layer_weights(model_, kind, sharding_).matrices) {
    if (!matrix.projection) continue;
    // These read what an earlier product of the layer has read, already quantized.
    const bool shares_input =
        matrix.name == "kv_a_proj" || matrix.name == "gate_proj" || matrix.name.starts_with("indexer_");
    if (matrix.role == WeightRole::kFloat32) list_.stream("router_cast", kind.count, tokens_ * matrix.k * 6.0);
    const bool quantize = !shares_input && !comes_in_nvfp4(kind, matrix);
    list_.product(matrix.name, kind.count, tokens_, matrix.k, matrix.n, matrix.role, quantize);
  }
}

void TokenPass::around_mixer(const Mixer& mixer, double count) {
  std::visit(
      [&](const auto& a) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(a)>, NoMixer>) around(a, count);
      },
      mixer);
}

/// Norm and rotary embedding of queries and keys, in place. The cache write is part of the attention kernels' times;
/// so is the rotation where the engine fuses it.
void TokenPass::around(const GroupedAttention& a, double count) {
  const double heads = heads_of(a.heads, sharding_);
  const double kv_heads = a.owns_cache ? kv_heads_of(a.kv_heads, sharding_) : 0.0;
  const double rotated = tokens_ * (heads + kv_heads) * a.head_dim * 2.0 * kHalf;
  // Over all heads: squares of queries and of keys are summed, reduced together (vLLM from 0.14,
  // github.com/vllm-project/vllm/pull/31493; SGLang's pull request 14416), and both normed. Rows of different widths,
  // which torch.compile keeps apart.
  const bool apart = a.qk_norm_over_heads && sharding_.tp > 1;
  if (a.qk_norm) list_.stream("qk_norm", count, rotated * (apart ? 1.5 : 1.0), apart ? 4.0 : 1.0);
  if (a.qk_norm && apart) {
    list_.exchange(Collective::kAllReduce, "qk_norm_all_reduce", count, tokens_ * 8.0, sharding_.tp);
  }
  if (a.rotary && !context_.rotary_in_attention) list_.stream("rotary", count, rotated);
  if (a.index_heads > 0) {
    indexer(a.index_heads, a.index_dim, count);
  }
  if (a.output_gate) list_.stream("output_gate", count, tokens_ * heads * a.value_dim * 3.0 * kHalf);
}

/// Norm of the key, rotation, quantization of queries and key apart, the key's cache write, scaling of the heads'
/// weights: six kernels (vllm/model_executor/models/deepseek_v2.py, sglang/srt/layers/attention/nsa/nsa_indexer.py).
void TokenPass::indexer(double heads, double dim, double count) {
  list_.stream("indexer_inputs", count, tokens_ * (heads + 1) * dim * (3.0 * kHalf + 1.0), 6.0);
}

/// Norms of the two latents in one kernel, rotation of the rotary parts.
void TokenPass::around(const LatentAttention& a, double count) {
  const double heads = heads_of(a.heads, sharding_);
  list_.stream("latent_norm", count, tokens_ * (a.query_rank + a.latent_dim) * 2.0 * kHalf);
  if (a.rope_dim > 0 && !context_.rotary_in_attention) {
    list_.stream("rotary", count, tokens_ * (heads + 1) * a.rope_dim * 2.0 * kHalf);
  }
  if (a.indexer_heads > 0) {
    indexer(a.indexer_heads, a.indexer_dim, count);
  }
  if (a.output_gate) list_.stream("output_gate", count, tokens_ * heads * a.value_dim * 3.0 * kHalf);
}

/// The scan's output is normed under a gate; a short convolution has one gate before it and one after.
void TokenPass::around(const StateLayer& a, double count) {
  const double bytes = tokens_ * a.out_features / sharding_.tp * 3.0 * kHalf;
  if (a.mixer.kind == StateMixer::Kind::kConvolution) return list_.stream("gates", 2.0 * count, bytes);
  list_.stream("gated_norm", count, bytes);
}

void TokenPass::activation(const std::string& name, double inter, bool gated, double count, double written) {
  list_.stream(name, count, tokens_ * inter / sharding_.tp * ((gated ? 2.0 : 1.0) + written) * kHalf);
}

/// The choice of experts, sorting, quantizing and summing up are part of the experts' time.
void TokenPass::experts(const ExpertFeedForward& f, double count) {
  const Precision& p = context_.precision;
  MoeShape shape;
  shape.tokens = group_tokens_;
  shape.variant = context_.moe_kernel;
  shape.hidden = f.latent > 0 ? f.latent : model_.hidden;
  shape.inter = f.inter;
  shape.top_k = f.top_k;
  shape.experts = f.experts;
  shape.tp = sharding_.expert_tp();
  shape.ep = sharding_.ep;
  shape.gated = f.gated;
  shape.weights = p.expert_weights;
  shape.activations = activations_for(WeightRole::kExpert, p);
  if (element_bits(p.expert_weights) < 16.0) shape.weight_scales = p.weight_scales;
  shape.routing = context_.routing;
  shape.expanded = context_.expanded_experts && context_.moe_kernel == MoeVariant::kDefault;
  list_.add("experts", count, shape);
  if (f.shared_inter > 0) {
    activation("shared_activation", f.shared_inter, f.gated, count);
    list_.stream("shared_add", count, tokens_ * model_.hidden * 3.0 * kHalf, f.shared_gate ? 2.0 : 1.0);
  }
  if (f.dense_inter > 0) activation("activation", f.dense_inter, f.gated, count);
}

/// Bytes of a value as ranks send it to the experts: quantized by the sender where that needs no scale of the
/// receiver's (nvfp4, fp8 per tensor), else in 16 bit.
double sent_bytes(const Precision& p) {
  const bool narrow = p.expert_weights == Dtype::kNvfp4 || p.expert_weights == Dtype::kFp8;
  return narrow ? element_bits(activations_for(WeightRole::kExpert, p)) / 8.0 : kHalf;
}

/// Partial sums are reduced once a block. Attention-DP ranks first bring their tokens together: all-gather and
/// reduce-scatter move every token to every rank, without padding where ranks hold unequally many; all-to-all sends a
/// token to the ranks of its experts alone.
void TokenPass::after_feed_forward(const LayerKind& kind) {
  if (!reduces_feed_forward(kind)) return;
  const double count = kind.count;
  const auto* routed = std::get_if<ExpertFeedForward>(&kind.feed_forward);
  const int ranks = sharding_.attention_dp;
  if (routed != nullptr && ranks > 1) {
    const double width = routed->latent > 0 ? routed->latent : model_.hidden;
    const double bytes = tokens_ * width * kHalf;
    if (context_.exchange == ExpertExchange::kAllToAll) {
      const double copies = std::min<double>(routed->top_k, sharding_.ep) / sharding_.tp;
      const double sent = element_bits(activations_for(WeightRole::kExpert, context_.precision)) / 8.0;
      list_.exchange(Collective::kAllToAll, "expert_dispatch", count, tokens_ * width * sent * copies,
                     ranks * sharding_.tp);
      list_.exchange(Collective::kAllToAll, "expert_combine", count, bytes * copies, ranks * sharding_.tp);
      if (sharding_.tp > 1) {
        list_.exchange(Collective::kAllGather, "expert_gather", count, message() / sharding_.tp, sharding_.tp);
      }
      return;
    }
    const double values = group_tokens_ * width;
    list_.exchange(Collective::kAllGather, "expert_gather", count, values / ranks * sent_bytes(context_.precision),
                   ranks);
    list_.exchange(Collective::kReduceScatter, "expert_scatter", count, values * kHalf, ranks);
  }
  reduce(kind);
}

/// Hidden state and residual go from each rank of a stage to its peer in the next (vLLM sends both), or all streams.
void TokenPass::pipeline() {
  if (sharding_.pp <= 1) return;
  const double streams = std::max(2.0, model_.layers.front().streams);
  list_.add("pipeline_send", sharding_.pp - 1, CollectiveWork{Collective::kSend, Bytes(streams * message()), 2});
}

/// Sampling takes the logits in fp32: conversion, softmax in two passes, the choice.
void TokenPass::head() {
  const double rows = tokens_;
  list_.stream("norm", model_.final_norms, tokens_ * model_.hidden * 4.0 * kHalf);
  const double columns = std::max(1.0, model_.vocabulary / sharding_.tp);
  if (model_.embedding_dim != model_.hidden) {
    list_.product("head_proj", 1, rows, model_.hidden, model_.embedding_dim, WeightRole::kOther);
  }
  list_.product("lm_head", 1, rows, model_.embedding_dim, columns, WeightRole::kHead);
  list_.exchange(Collective::kAllGather, "logits_gather", 1, rows * columns * kHalf, sharding_.tp);
  list_.stream("sampling", 1, rows * model_.vocabulary * (kHalf + 4.0 + 8.0 + 4.0), 4.0);
}

}  // namespace

std::vector<Operator> token_operators(const OperatorContext& context, double tokens, double group_tokens) {
  SIM_CHECK(context.model != nullptr, "operators of a model");
  if (tokens <= 0) return {};
  TokenPass pass(context, tokens, group_tokens > 0 ? group_tokens : tokens * context.sharding.attention_dp);
  pass.embedding();
  for (const LayerKind& kind : context.model->layers) pass.layer(kind);
  pass.pipeline();
  return pass.take();
}

std::vector<Operator> head_operators(const OperatorContext& context, double rows) {
  SIM_CHECK(context.model != nullptr, "operators of a model");
  if (rows <= 0) return {};
  TokenPass pass(context, rows, rows);
  pass.head();
  return pass.take();
}

}  // namespace roofcast
