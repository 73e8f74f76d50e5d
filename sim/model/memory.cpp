#include "sim/model/memory.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/model/feed_forward_model.h"
#include "sim/model/mixer_model.h"

namespace roofcast {
namespace {

double layer_weight_bytes(const ModelSpec& model, const LayerKind& kind, const Precision& p, const Sharding& s) {
  const LayerWeights weights = layer_weights(model, kind, s);
  double bytes = weights.vectors * bytes_per_weight(WeightRole::kOther, p);
  for (const WeightMatrix& matrix : weights.matrices) {
    bytes += matrix.k * matrix.n * matrix.copies * bytes_per_weight(matrix.role, p);
  }
  const double resident = std::ceil(facts_of(kind.feed_forward).experts / s.ep);
  return bytes + resident * weights.expert_vectors * bytes_per_weight(WeightRole::kOther, p);
}

double embedding_bytes(const ModelSpec& model, const Precision& p, const Sharding& s) {
  const double table =
      std::ceil(model.vocabulary / s.tp) * model.embedding_dim * bytes_per_weight(WeightRole::kHead, p);
  const double other = bytes_per_weight(WeightRole::kOther, p);
  const double factored = model.embedding_dim == model.hidden ? 0.0 : model.embedding_dim * model.hidden;
  return table + (model.position_embeddings * model.hidden + factored + model.extra_parameters) * other;
}

/// Bytes of head and final norms, without the table that a tied head shares.
double head_bytes(const ModelSpec& model, const Precision& p, const Sharding& s, bool with_table) {
  const double rows = std::ceil(model.vocabulary / s.tp);
  const double other = bytes_per_weight(WeightRole::kOther, p);
  const bool norm_bias = !model.layers.empty() && model.layers.front().norm_bias;
  const double factored = model.embedding_dim == model.hidden ? 0.0 : model.embedding_dim * model.hidden;
  return (with_table ? rows * model.embedding_dim * bytes_per_weight(WeightRole::kHead, p) : 0.0) +
         ((model.head_bias ? rows : 0.0) + model.final_norms * model.hidden * (norm_bias ? 2.0 : 1.0) + factored) *
             other;
}

/// The layout of the layers [first, end); `caches` are those of each layer kind.
CacheLayout stage_layout(const ModelSpec& model, const std::vector<LayerCache>& caches, int first, int end) {
  std::map<double, double> groups;
  double state = 0;
  for (int i = first; i < end; ++i) {
    const LayerCache& cache = caches[static_cast<std::size_t>(model.order[static_cast<std::size_t>(i)])];
    if (cache.all_tokens > 0) groups[0.0] += cache.all_tokens;
    if (cache.windowed > 0) groups[cache.window] += cache.windowed;
    state += cache.state;
  }
  CacheLayout layout;
  for (const auto& [window, bytes] : groups) layout.groups.push_back({Bytes(bytes), window});
  layout.state_per_sequence = Bytes(state);
  return layout;
}

}  // namespace

Bytes weight_bytes(const ModelSpec& model, const Precision& precision, const Sharding& sharding) {
  std::vector<double> per_kind;
  for (const LayerKind& kind : model.layers) per_kind.push_back(layer_weight_bytes(model, kind, precision, sharding));
  const std::vector<int> bounds = stage_bounds(model.layer_count(), sharding.pp);
  double fullest = 0;
  for (int stage = 0; stage < sharding.pp; ++stage) {
    const std::size_t at = static_cast<std::size_t>(stage);
    std::vector<double> sets(model.layers.size(), 0.0);  ///< weight sets per kind of layer
    double bytes = 0;
    for (int i = bounds[at]; i < bounds[at + 1]; ++i) {
      const auto kind = static_cast<std::size_t>(model.order[static_cast<std::size_t>(i)]);
      const double shared = model.layers[kind].weight_sets;
      if (shared > 0 && sets[kind] >= shared) continue;
      sets[kind] += 1;
      bytes += per_kind[kind];
    }
    const bool first = stage == 0;
    const bool last = stage + 1 == sharding.pp;
    if (first) bytes += embedding_bytes(model, precision, sharding);
    if (first && model.encoder) bytes += weight_bytes(*model.encoder, precision, sharding).base();
    if (last) bytes += head_bytes(model, precision, sharding, !(model.tied_embedding && first));
    fullest = std::max(fullest, bytes);
  }
  return Bytes(fullest);
}

Bytes CacheLayout::bytes_per_token() const {
  Bytes sum{};
  for (const CacheGroup& group : groups) sum += group.bytes_per_token;
  return sum;
}

Bytes CacheLayout::sequence_bytes(double tokens) const {
  Bytes sum = state_per_sequence;
  for (const CacheGroup& group : groups) {
    sum += group.bytes_per_token * (group.window > 0 ? std::min(tokens, group.window) : tokens);
  }
  return sum;
}

/// A sliding window touches one block more than its length fills.
Bytes CacheLayout::paged_bytes(double tokens, double block) const {
  Bytes sum = state_per_sequence;
  for (const CacheGroup& group : groups) {
    double blocks = std::ceil(tokens / block);
    if (group.window > 0) blocks = std::min(blocks, std::ceil(group.window / block) + 1.0);
    sum += group.bytes_per_token * (blocks * block);
  }
  return sum;
}

CacheLayout cache_layout(const ModelSpec& model, const Precision& precision, const Sharding& sharding) {
  std::vector<LayerCache> caches;
  for (const LayerKind& kind : model.layers) caches.push_back(model_of(kind.mixer)->cache(precision, sharding));
  const std::vector<int> bounds = stage_bounds(model.layer_count(), sharding.pp);
  CacheLayout fullest;
  double most = -1.0;
  for (std::size_t stage = 0; stage + 1 < bounds.size(); ++stage) {
    CacheLayout layout = stage_layout(model, caches, bounds[stage], bounds[stage + 1]);
    const double bytes = layout.sequence_bytes(4096).base();
    if (bytes > most) {
      most = bytes;
      fullest = std::move(layout);
    }
  }
  return fullest;
}

}  // namespace roofcast
