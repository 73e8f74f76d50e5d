#include "sim/model/memory.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/model/weights.h"

namespace roofcast {
namespace {

double layer_weight_bytes(const ModelSpec& model, const LayerKind& kind, const Precision& p, const Sharding& s) {
  const LayerWeights weights = layer_weights(model, kind, s);
  double bytes = weights.vectors * bytes_per_weight(WeightRole::kOther, p);
  for (const WeightMatrix& matrix : weights.matrices) {
    bytes += matrix.k * matrix.n * matrix.copies * bytes_per_weight(matrix.role, p);
  }
  if (const auto* experts = std::get_if<ExpertFeedForward>(&kind.feed_forward)) {
    bytes += std::ceil(experts->experts / s.ep) * weights.expert_vectors * bytes_per_weight(WeightRole::kOther, p);
  }
  return bytes;
}

double embedding_bytes(const ModelSpec& model, const Precision& p, const Sharding& s) {
  const double table =
      std::ceil(model.vocabulary / s.tp) * model.embedding_dim * bytes_per_weight(WeightRole::kHead, p);
  const double other = bytes_per_weight(WeightRole::kOther, p);
  const double factored = model.embedding_dim == model.hidden ? 0.0 : model.embedding_dim * model.hidden;
  return table + (model.position_embeddings * model.hidden + factored + model.extra_parameters) * other;
}

/// Head and final norms, without the table that a tied head shares.
double head_bytes(const ModelSpec& model, const Precision& p, const Sharding& s, bool with_table) {
  const double rows = std::ceil(model.vocabulary / s.tp);
  const double other = bytes_per_weight(WeightRole::kOther, p);
  const bool norm_bias = !model.layers.empty() && model.layers.front().norm_bias;
  const double factored = model.embedding_dim == model.hidden ? 0.0 : model.embedding_dim * model.hidden;
  return (with_table ? rows * model.embedding_dim * bytes_per_weight(WeightRole::kHead, p) : 0.0) +
         ((model.head_bias ? rows : 0.0) + model.final_norms * model.hidden * (norm_bias ? 2.0 : 1.0) + factored) *
             other;
}

struct LayerCache {
  double all_tokens = 0;            ///< bytes a token kept for the whole context
  double windowed = 0, window = 0;  ///< bytes a token kept for a window
  double state = 0;                 ///< bytes a sequence
};

/// Keys of an indexer: fp8 with an fp32 scale every 128 values (DeepSeek-V3.2, 2025): 132 B for 128.
double index_bytes(double dim) { return dim + 4.0 * std::ceil(dim / 128.0); }

LayerCache layer_cache(const Mixer& mixer, const Precision& p, const Sharding& s) {
  LayerCache cache;
  if (const auto* a = std::get_if<GroupedAttention>(&mixer)) {
    if (!a->owns_cache) return cache;
    const double bytes =
        kv_heads_of(a->kv_heads, s) * (cached_bytes(p.kv_cache, a->head_dim) + cached_bytes(p.kv_cache, a->value_dim));
    if (a->window > 0) {
      cache.windowed = bytes;
      cache.window = a->window;
    } else {
      cache.all_tokens = bytes + (a->index_heads > 0 ? index_bytes(a->index_dim) : 0.0);
    }
  } else if (const auto* l = std::get_if<LatentAttention>(&mixer)) {
    const double bytes = latent_bytes(*l, p);
    cache.windowed = l->window > 0 ? bytes : 0.0;
    cache.window = l->window;
    if (l->window <= 0 || l->compression > 1) {
      cache.all_tokens = (bytes + (l->indexer_heads > 0 ? index_bytes(l->indexer_dim) : 0.0)) / l->compression;
    }
  } else if (const auto* state = std::get_if<StateLayer>(&mixer)) {
    cache.state = state_bytes(mixer_of(state->mixer, s)).base();
  }
  return cache;
}

CacheLayout stage_layout(const ModelSpec& model, const Precision& p, const Sharding& s, int first, int end) {
  std::map<double, double> groups;
  double state = 0;
  for (int i = first; i < end; ++i) {
    const LayerKind& kind = model.layers[static_cast<std::size_t>(model.order[static_cast<std::size_t>(i)])];
    const LayerCache cache = layer_cache(kind.mixer, p, s);
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
    double bytes = 0;
    for (int i = bounds[at]; i < bounds[at + 1]; ++i) {
      bytes += per_kind[static_cast<std::size_t>(model.order[static_cast<std::size_t>(i)])];
    }
    const bool first = stage == 0;
    const bool last = stage + 1 == sharding.pp;
    if (first) bytes += embedding_bytes(model, precision, sharding);
    if (last) bytes += head_bytes(model, precision, sharding, !(model.tied_embedding && first));
    fullest = std::max(fullest, bytes);
  }
  return Bytes(fullest);
}

Bytes total_weight_bytes(const ModelSpec& model, const Precision& precision) {
  const Sharding whole;
  double bytes = head_bytes(model, precision, whole, true);
  for (const LayerKind& kind : model.layers) bytes += kind.count * layer_weight_bytes(model, kind, precision, whole);
  return Bytes(bytes);
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

/// A window that slides over blocks touches one block more than its length fills.
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
  const std::vector<int> bounds = stage_bounds(model.layer_count(), sharding.pp);
  CacheLayout fullest;
  double most = -1.0;
  for (std::size_t stage = 0; stage + 1 < bounds.size(); ++stage) {
    CacheLayout layout = stage_layout(model, precision, sharding, bounds[stage], bounds[stage + 1]);
    const double bytes = layout.sequence_bytes(4096).base();
    if (bytes > most) {
      most = bytes;
      fullest = std::move(layout);
    }
  }
  return fullest;
}

}  // namespace roofcast
