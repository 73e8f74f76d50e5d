#pragma once
// Bytes per GPU: weights, activations, and cache and state per sequence.

#include <vector>

#include "base/units.h"
#include "sim/model/sharding.h"

namespace roofcast {

struct ModelSpec;
struct Precision;

/// Bytes of weights on the GPU that holds most, including embedding, head, norms, biases and scales.
Bytes weight_bytes(const ModelSpec& model, const Precision& precision, const Sharding& sharding);

/// Layers that cache the same tokens: the whole context, or a window of it.
struct CacheGroup {
  Bytes bytes_per_token{};  ///< per GPU, all layers of the group
  double window = 0;        ///< tokens; 0: all tokens
};

/// The memory that a sequence takes on the GPU that holds most.
struct CacheLayout {
  std::vector<CacheGroup> groups;
  Bytes state_per_sequence{};

  Bytes bytes_per_token() const;                         ///< as long as no window is full
  Bytes sequence_bytes(double tokens) const;             ///< with windows and state, not rounded to blocks
  Bytes paged_bytes(double tokens, double block) const;  ///< the same, rounded up to whole blocks
};
CacheLayout cache_layout(const ModelSpec& model, const Precision& precision, const Sharding& sharding);

/// Activation bytes of a step of `tokens` tokens and `logit_rows` rows of logits: the largest buffers in use at once.
/// `kept_experts`: buffers of the routed experts, with copies of their operands, are never freed and add to the others.
Bytes activation_bytes(const ModelSpec& model, const Precision& precision, const Sharding& sharding, double tokens,
                       double logit_rows, bool kept_experts = false);

/// The same in an engine compiled for at most `tokens` tokens, which plans memory once for the whole graph. The gate-up
/// product is written in place, and the workspace of the attention plugin (q, k, v and its output) is separate.
Bytes compiled_activation_bytes(const ModelSpec& model, const Sharding& sharding, double tokens, double logit_rows);

/// Scores of naive attention in one layer, 16 bit: every head, each query, each of `context` tokens.
Bytes score_bytes(const ModelSpec& model, const Sharding& sharding, double queries, double context);

}  // namespace roofcast
