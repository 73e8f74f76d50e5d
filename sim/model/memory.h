#pragma once
// Bytes of one GPU: weights, cache and state per sequence.

#include <vector>

#include "base/units.h"
#include "sim/model/sharding.h"

namespace roofcast {

struct ModelSpec;
struct Precision;

/// Bytes of weights on the fullest GPU: embedding, head, norms, biases and scales included.
Bytes weight_bytes(const ModelSpec& model, const Precision& precision, const Sharding& sharding);

/// One group of layers that keep the same tokens: all of the context, or a window of it.
struct CacheGroup {
  Bytes bytes_per_token{};  ///< of one GPU, all layers of the group
  double window = 0;        ///< 0 = keeps every token
};

/// The memory that a sequence takes on the fullest GPU.
struct CacheLayout {
  std::vector<CacheGroup> groups;
  Bytes state_per_sequence{};

  Bytes bytes_per_token() const;                         ///< while no window is full
  Bytes sequence_bytes(double tokens) const;             ///< windows and state applied, no rounding to blocks
  Bytes paged_bytes(double tokens, double block) const;  ///< rounded up to whole blocks
};
CacheLayout cache_layout(const ModelSpec& model, const Precision& precision, const Sharding& sharding);

/// Largest activation buffers of a step of `tokens` tokens and `logit_rows` rows of logits. `kept_experts`: those of
/// the routed experts, with copies of their operands, are never given back and lie beside whatever else is largest.
Bytes activation_bytes(const ModelSpec& model, const Precision& precision, const Sharding& sharding, double tokens,
                       double logit_rows, bool kept_experts = false);

/// The same of an engine compiled for at most so many tokens: memory planned once for the whole graph. The product of
/// gate and up takes the place of one of them, and the workspace of the attention plugin (q, k, v and its output) is
/// set aside beside the graph's buffers.
Bytes compiled_activation_bytes(const ModelSpec& model, const Sharding& sharding, double tokens, double logit_rows);

/// Scores of one layer's naive attention, in 16 bit: of every head, each query and each of `context` tokens.
Bytes score_bytes(const ModelSpec& model, const Sharding& sharding, double queries, double context);

}  // namespace roofcast
