// Buffers that live while a step runs.

#include <algorithm>

#include "sim/model/memory.h"
#include "sim/model/weights.h"

namespace roofcast {
namespace {

constexpr double kHalf = 2.0;  // bytes of a 16-bit value
/// vLLM runs its fused experts on at most so many tokens at a time (VLLM_FUSED_MOE_CHUNK_SIZE, 32 Ki).
constexpr double kExpertChunk = 32768;

/// Values a token that a mixer holds at once: projections and output.
double mixer_values(const Mixer& mixer, const Sharding& s) {
  if (const auto* a = std::get_if<GroupedAttention>(&mixer)) {
    const double heads = heads_of(a->heads, s);
    const double kv = kv_heads_of(a->kv_heads, s);
    return heads * a->head_dim * (a->output_gate ? 2.0 : 1.0) + kv * (a->head_dim + a->value_dim) +
           heads * a->value_dim;
  }
  if (const auto* l = std::get_if<LatentAttention>(&mixer)) {
    const double heads = heads_of(l->heads, s);
    return l->query_rank + l->latent_dim + l->rope_dim +
           heads * (2.0 * (l->nope_dim + l->rope_dim) + 2.0 * l->value_dim);
  }
  if (const auto* state = std::get_if<StateLayer>(&mixer)) {
    return (state->in_features + state->mixer.conv_channels + 2.0 * state->out_features) / s.tp;
  }
  return 0.0;
}

/// Bytes of the routed experts over `tokens` tokens of a rank: per choice gate and up, their product and the output.
double routed_bytes(const ModelSpec& model, const FeedForward& block, const Sharding& s, double tokens) {
  const auto* experts = std::get_if<ExpertFeedForward>(&block);
  if (experts == nullptr) return 0.0;
  const double gathered = std::min(tokens * s.attention_dp, kExpertChunk);
  const double width = experts->latent > 0 ? experts->latent : model.hidden;
  const double inner = (experts->gated ? 3.0 : 2.0) * experts->inter / s.expert_tp() + width;
  return gathered * experts->top_k * inner * kHalf;
}

/// Bytes of both products' operands, a copy for each choice, where they are narrower than 16 bit.
double routed_operand_bytes(const ModelSpec& model, const FeedForward& block, const Precision& p, const Sharding& s,
                            double tokens) {
  const auto* experts = std::get_if<ExpertFeedForward>(&block);
  const double bits = element_bits(activations_for(WeightRole::kExpert, p));
  if (experts == nullptr || bits >= 16.0) return 0.0;
  const double gathered = std::min(tokens * s.attention_dp, kExpertChunk);
  const double width = experts->latent > 0 ? experts->latent : model.hidden;
  return gathered * experts->top_k * (width + experts->inter / s.expert_tp()) * bits / 8.0;
}

/// Bytes of the rest of a feed-forward block: gate and up and their product.
double dense_bytes(const FeedForward& block, const Sharding& s, double tokens) {
  if (const auto* dense = std::get_if<DenseFeedForward>(&block)) {
    return tokens * (dense->gated ? 3.0 : 2.0) * dense->inter / s.tp * kHalf;
  }
  const auto* experts = std::get_if<ExpertFeedForward>(&block);
  return experts == nullptr ? 0.0 : tokens * 3.0 * experts->shared_inter / s.tp * kHalf;
}

double feed_forward_bytes(const ModelSpec& model, const FeedForward& block, const Sharding& s, double tokens) {
  return routed_bytes(model, block, s, tokens) + dense_bytes(block, s, tokens);
}

/// The widest of what a layer's blocks hold, without the routed experts where these are kept apart.
double widest_block_bytes(const ModelSpec& model, const Sharding& s, double tokens, bool kept_experts) {
  double widest = 0;
  for (const LayerKind& kind : model.layers) {
    const FeedForward& block = kind.feed_forward;
    const double feed = kept_experts ? dense_bytes(block, s, tokens) : feed_forward_bytes(model, block, s, tokens);
    widest = std::max({widest, tokens * mixer_values(kind.mixer, s) * kHalf, feed});
  }
  return widest;
}

}  // namespace

Bytes activation_bytes(const ModelSpec& model, const Precision& precision, const Sharding& sharding, double tokens,
                       double logit_rows, bool kept_experts) {
  double kept = 0;
  if (kept_experts) {
    for (const LayerKind& kind : model.layers)
      kept = std::max(kept, routed_bytes(model, kind.feed_forward, sharding, tokens) +
                                routed_operand_bytes(model, kind.feed_forward, precision, sharding, tokens));
  }
  const double block = widest_block_bytes(model, sharding, tokens, kept_experts);
  const double stream = tokens * model.hidden * 3.0 * kHalf;                  // residual, its norm, the block's output
  const double logits = logit_rows * model.vocabulary * (kHalf + 2.0 * 4.0);  // 16 bit, fp32, probabilities
  return Bytes(stream + kept + std::max(block, logits));
}

Bytes compiled_activation_bytes(const ModelSpec& model, const Sharding& sharding, double tokens, double logit_rows) {
  double block = 0, workspace = 0;
  for (const LayerKind& kind : model.layers) {
    double bytes = feed_forward_bytes(model, kind.feed_forward, sharding, tokens);
    if (const auto* dense = std::get_if<DenseFeedForward>(&kind.feed_forward))
      bytes = tokens * (dense->gated ? 2.0 : 1.0) * dense->inter / sharding.tp * kHalf;
    block = std::max(block, bytes);
    workspace = std::max(workspace, tokens * mixer_values(kind.mixer, sharding) * kHalf);
  }
  const double stream = tokens * model.hidden * 2.0 * kHalf;  // residual and its norm
  return Bytes(stream + block + workspace + logit_rows * model.vocabulary * 4.0);
}

}  // namespace roofcast
