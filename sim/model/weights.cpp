#include "sim/model/weights.h"

#include <algorithm>
#include <cmath>

#include "sim/model/feed_forward_model.h"
#include "sim/model/mixer_model.h"

namespace roofcast {
namespace {

double split(double whole, int parts) { return std::ceil(whole / parts); }

bool sixteen_bit_or_more(Dtype dtype) { return element_bits(dtype) >= 16.0; }

/// Hyper-connections (Zhu et al. 2024, arXiv:2409.19606; with a manifold constraint, Xie et al. 2025,
/// arXiv:2512.24880): n residual streams. Before each block, one projection of all n h values of a token gives n read
/// weights, n write weights and n x n mixing weights, with offsets and three scales.
void add_hyper_connections(LayerWeights& out, const LayerKind& kind, double hidden) {
  const double n = kind.streams, mixes = n * n + 2.0 * n;
  if (facts_of(kind.mixer).present) {
    out.matrices.push_back({.name = "hyper_mixer", .k = n * hidden, .n = mixes, .role = WeightRole::kOther});
    out.vectors += mixes + 3.0;
  }
  if (facts_of(kind.feed_forward).present) {
    out.matrices.push_back({.name = "hyper_feed_forward", .k = n * hidden, .n = mixes, .role = WeightRole::kOther});
    out.vectors += mixes + 3.0;
  }
}

}  // namespace

LayerWeights layer_weights(const ModelSpec& model, const LayerKind& kind, const Sharding& s) {
  LayerWeights out;
  const double hidden = model.hidden;
  model_of(kind.mixer)->add_weights(out, hidden, s);
  model_of(kind.feed_forward)->add_weights(out, hidden, s);
  if (kind.streams > 1) add_hyper_connections(out, kind, hidden);
  if (kind.extra_parameters > 0) {
    out.matrices.push_back({.name = "layer_proj", .k = hidden, .n = kind.extra_parameters / hidden});
  }
  out.vectors += kind.norms * hidden * (kind.norm_bias ? 2.0 : 1.0);
  return out;
}

Dtype dtype_of(WeightRole role, const Precision& p) {
  switch (role) {
    case WeightRole::kMixer:
      return p.attention_weights;
    case WeightRole::kFeedForward:
      return p.weights;
    case WeightRole::kExpert:
      return p.expert_weights;
    case WeightRole::kHead:
      return p.head;
    case WeightRole::kOther:
      return p.other;
    case WeightRole::kFloat32:
      return Dtype::kFp32;
  }
  SIM_CHECK(false, "a weight role");
  return p.weights;
}

bool is_two_of_four(WeightRole role, const Precision& p) {
  return p.two_of_four && (role == WeightRole::kMixer || role == WeightRole::kFeedForward);
}

double bytes_per_weight(WeightRole role, const Precision& p) {
  if (is_two_of_four(role, p)) {
    Precision dense = p;
    dense.two_of_four = false;
    return bytes_per_weight(role, dense) / 2.0 + 1.0 / 8.0;
  }
  const Dtype dtype = dtype_of(role, p);
  if (sixteen_bit_or_more(dtype)) return element_bits(dtype) / 8.0;
  const Scales& scales = role == WeightRole::kHead ? p.head_scales : p.weight_scales;
  const double quantized = scales.group_size > 0 ? bytes_per_element(dtype, scales) : bytes_per_element(dtype);
  return (1.0 - p.outlier_fraction) * quantized + p.outlier_fraction * 2.0;
}

Dtype activations_for(WeightRole role, const Precision& p) {
  if (role == WeightRole::kFloat32) return Dtype::kFp32;
  if (!sixteen_bit_or_more(dtype_of(role, p))) return p.activations;
  return sixteen_bit_or_more(p.activations) ? p.activations : Dtype::kBf16;
}

double heads_of(double heads, const Sharding& s) { return split(heads, s.tp); }

double kv_heads_of(double kv_heads, const Sharding& s) { return std::max(1.0, std::ceil(kv_heads / s.tp)); }

StateMixer mixer_of(const StateMixer& whole, const Sharding& s) {
  StateMixer mine = whole;
  mine.heads = split(whole.heads, s.tp);
  mine.key_heads = whole.key_heads > 0 ? std::max(1.0, whole.key_heads / s.tp) : 0.0;
  mine.conv_channels = whole.conv_channels / s.tp;
  if (whole.kind != StateMixer::Kind::kMamba1 && whole.conv_channels > 0) {
    mine.conv_channels += 2.0 * (mine.key_heads - whole.key_heads / s.tp) * whole.key_dim;
  }
  return mine;
}

std::vector<int> stage_bounds(int layers, int pp) {
  std::vector<int> share(static_cast<std::size_t>(pp), layers / pp);
  const int rest = layers % pp;
  for (int i = 2; i < rest + 2; ++i) share[static_cast<std::size_t>(pp - i)] += 1;
  std::vector<int> bounds{0};
  for (int layers_here : share) bounds.push_back(bounds.back() + layers_here);
  return bounds;
}

}  // namespace roofcast
