// Activation buffers of a running step.

#include <algorithm>

#include "sim/model/feed_forward_model.h"
#include "sim/model/memory.h"
#include "sim/model/mixer_model.h"

namespace roofcast {
namespace {

/// The largest buffers of a layer's blocks, without the routed experts if these keep their own.
double widest_block_bytes(const ModelSpec& model, const Sharding& s, double tokens, bool kept_experts) {
  double widest = 0;
  for (const LayerKind& kind : model.layers) {
    const FeedForwardBuffers block = model_of(kind.feed_forward)->buffers(model.hidden, s, tokens);
    const double feed = kept_experts ? block.rest : block.routed + block.rest;
    widest = std::max({widest, tokens * model_of(kind.mixer)->activation_values(s) * kHalfBytes, feed});
  }
  return widest;
}

}  // namespace

Bytes activation_bytes(const ModelSpec& model, const Precision& precision, const Sharding& sharding, double tokens,
                       double logit_rows, bool kept_experts) {
  double kept = 0;
  if (kept_experts) {
    // Operands narrower than 16 bit are separate copies, one per chosen expert, for both products.
    const double bits = element_bits(activations_for(WeightRole::kExpert, precision));
    for (const LayerKind& kind : model.layers) {
      const FeedForwardBuffers block = model_of(kind.feed_forward)->buffers(model.hidden, sharding, tokens);
      kept = std::max(kept, block.routed + (bits < 16.0 ? block.routed_operands * bits / 8.0 : 0.0));
    }
  }
  const double block = widest_block_bytes(model, sharding, tokens, kept_experts);
  const double stream = tokens * model.hidden * 3.0 * kHalfBytes;  // residual, its norm, the block's output
  const double logits = logit_rows * model.vocabulary * (kHalfBytes + 2.0 * 4.0);  // 16 bit, fp32, probabilities
  return Bytes(stream + kept + std::max(block, logits));
}

Bytes score_bytes(const ModelSpec& model, const Sharding& sharding, double queries, double context) {
  double heads = 0;
  for (const LayerKind& kind : model.layers) heads = std::max(heads, model_of(kind.mixer)->scoring_heads(sharding));
  return Bytes(heads * queries * context * kHalfBytes);
}

Bytes compiled_activation_bytes(const ModelSpec& model, const Sharding& sharding, double tokens, double logit_rows) {
  double block = 0, workspace = 0;
  for (const LayerKind& kind : model.layers) {
    block = std::max(block, model_of(kind.feed_forward)->buffers(model.hidden, sharding, tokens).compiled);
    workspace = std::max(workspace, tokens * model_of(kind.mixer)->activation_values(sharding) * kHalfBytes);
  }
  const double stream = tokens * model.hidden * 2.0 * kHalfBytes;  // residual and its norm
  return Bytes(stream + block + workspace + logit_rows * model.vocabulary * 4.0);
}

}  // namespace roofcast
