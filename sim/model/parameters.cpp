// Parameter counts, read off the weight list of an unsharded model.

#include <algorithm>

#include "sim/model/feed_forward_model.h"

namespace roofcast {

ParameterCount count_parameters(const ModelSpec& model) {
  const Sharding whole;
  ParameterCount count;
  for (const LayerKind& kind : model.layers) {
    const LayerWeights weights = layer_weights(model, kind, whole);
    double total = weights.vectors;
    double active = weights.vectors;
    for (const WeightMatrix& matrix : weights.matrices) {
      const double one = matrix.k * matrix.n;
      total += one * matrix.copies;
      active += one * matrix.used;
    }
    const FeedForwardFacts block = facts_of(kind.feed_forward);
    total += block.experts * weights.expert_vectors;
    active += block.top_k * weights.expert_vectors;
    count.total += (kind.weight_sets > 0 ? std::min<double>(kind.weight_sets, kind.count) : kind.count) * total;
    count.active += kind.count * active;
  }
  const double head = model.vocabulary * model.embedding_dim + (model.head_bias ? model.vocabulary : 0.0);
  const double factored = model.embedding_dim == model.hidden ? 0.0 : 2.0 * model.embedding_dim * model.hidden;
  const bool norm_bias = !model.layers.empty() && model.layers.front().norm_bias;
  const double final_norms = model.final_norms * model.hidden * (norm_bias ? 2.0 : 1.0);
  count.embedding = model.vocabulary * model.embedding_dim + model.position_embeddings * model.hidden;
  count.active += (model.encoder_only ? 0.0 : head) + factored + final_norms;
  count.total += count.embedding + (model.tied_embedding ? head - model.vocabulary * model.embedding_dim : head) +
                 factored + final_norms + model.extra_parameters;
  if (model.encoder) count.total += count_parameters(*model.encoder).total;
  return count;
}

}  // namespace roofcast
