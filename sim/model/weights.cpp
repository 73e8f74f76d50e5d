#include "sim/model/weights.h"

#include <algorithm>
#include <cmath>

namespace roofcast {
namespace {

template <class... F>
struct Overload : F... {
  using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;

double split(double whole, int parts) { return std::ceil(whole / parts); }

bool sixteen_bit_or_more(Dtype dtype) { return element_bits(dtype) >= 16.0; }

void add_indexer(LayerWeights& out, double query_width, double hidden, double heads, double dim) {
  if (heads <= 0) return;
  out.matrices.push_back({.name = "indexer_q_proj", .k = query_width, .n = heads * dim, .role = WeightRole::kMixer});
  out.matrices.push_back({.name = "indexer_k_proj", .k = hidden, .n = dim, .role = WeightRole::kMixer});
  out.matrices.push_back({.name = "indexer_weights_proj", .k = hidden, .n = heads, .role = WeightRole::kOther});
  out.vectors += 2 * dim;
}

/// qkv: hidden -> heads d_k [twice when gated] + kv_heads (d_k + d_v); o: heads d_v -> hidden.
void add_grouped(LayerWeights& out, const GroupedAttention& a, double hidden, const Sharding& s) {
  const double heads = heads_of(a.heads, s);
  const double kv_heads = kv_heads_of(a.kv_heads, s);
  double columns = heads * a.head_dim * (a.output_gate ? 2.0 : 1.0);
  if (a.owns_cache) columns += kv_heads * (a.head_dim + (a.value_projection ? a.value_dim : 0.0));
  out.matrices.push_back({.name = "qkv_proj", .k = hidden, .n = columns, .role = WeightRole::kMixer});
  out.matrices.push_back({.name = "o_proj", .k = heads * a.value_dim, .n = hidden, .role = WeightRole::kMixer});
  add_indexer(out, hidden, hidden, a.index_heads, a.index_dim);
  if (a.qkv_bias) out.vectors += columns;
  if (a.output_bias) out.vectors += hidden;
  if (a.qk_norm) out.vectors += a.head_dim * (a.owns_cache ? 2.0 : 1.0);
  if (a.sinks) out.vectors += heads;
}

/// heads d_v -> hidden, or in two pieces: each of g groups of heads to r values, then g r -> hidden (DeepSeek-V4).
void add_latent_output(LayerWeights& out, const LatentAttention& a, double heads, double hidden, const Sharding& s) {
  double width = heads * a.value_dim;
  if (a.output_groups > 0) {
    const double groups = split(a.output_groups, s.tp);
    out.matrices.push_back(
        {.name = "o_a_proj", .k = width / groups, .n = groups * a.output_rank, .role = WeightRole::kMixer});
    width = groups * a.output_rank;
  }
  out.matrices.push_back({.name = "o_proj", .k = width, .n = hidden, .role = WeightRole::kMixer});
}

/// DeepSeek-V2 (2024), eq. 9-19: hidden -> query_rank -> heads (nope + rope); hidden -> latent + rope, the cached part;
/// latent -> heads (nope + value), which decode absorbs into its queries and outputs.
void add_latent(LayerWeights& out, const LatentAttention& a, double hidden, const Sharding& s) {
  const double heads = heads_of(a.heads, s);
  const double query = heads * (a.nope_dim + a.rope_dim);
  const double cached = a.latent_dim + a.rope_dim;
  if (a.query_rank > 0) {
    out.matrices.push_back({.name = "qkv_a_proj", .k = hidden, .n = a.query_rank + cached, .role = WeightRole::kMixer});
    out.matrices.push_back({.name = "q_b_proj", .k = a.query_rank, .n = query, .role = WeightRole::kMixer});
    out.vectors += a.query_rank;
  } else {
    out.matrices.push_back({.name = "q_proj", .k = hidden, .n = query, .role = WeightRole::kMixer});
    out.matrices.push_back({.name = "kv_a_proj", .k = hidden, .n = cached, .role = WeightRole::kMixer});
  }
  out.vectors += a.latent_dim;
  if (!a.shared_vector) {
    out.matrices.push_back({.name = "kv_b_proj",
                            .k = a.latent_dim,
                            .n = heads * (a.nope_dim + a.value_dim),
                            .role = WeightRole::kMixer,
                            .projection = false});
  }
  if (a.compression > 1) {
    out.matrices.push_back({.name = "compressor_proj", .k = hidden, .n = 2.0 * cached, .role = WeightRole::kMixer});
  }
  if (a.output_gate) {
    out.matrices.push_back({.name = "gate_proj", .k = hidden, .n = heads * a.value_dim, .role = WeightRole::kMixer});
  }
  add_latent_output(out, a, heads, hidden, s);
  add_indexer(out, a.query_rank > 0 ? a.query_rank : hidden, hidden, a.indexer_heads, a.indexer_dim);
}

void add_state(LayerWeights& out, const StateLayer& a, double hidden, const Sharding& s) {
  const StateMixer mine = mixer_of(a.mixer, s);
  const double replicated = 2.0 * (mine.key_heads - a.mixer.key_heads / s.tp) * a.mixer.key_dim;
  const bool grouped = a.mixer.kind != StateMixer::Kind::kMamba1;
  out.matrices.push_back({.name = "in_proj",
                          .k = hidden,
                          .n = a.in_features / s.tp + (grouped ? replicated : 0.0),
                          .role = WeightRole::kMixer});
  if (a.extra_projection > 0) {
    out.matrices.push_back({.name = "state_proj",
                            .k = a.out_features / s.tp,
                            .n = a.extra_projection / a.out_features,
                            .role = WeightRole::kMixer});
  }
  out.matrices.push_back({.name = "out_proj", .k = a.out_features / s.tp, .n = hidden, .role = WeightRole::kMixer});
  out.vectors += (a.extra_parameters - a.extra_projection) / s.tp;
}

/// Hyper-connections (Zhu et al. 2024, arXiv:2409.19606; with a manifold constraint, Xie et al. 2025,
/// arXiv:2512.24880): n residual streams; before each block all n h values of a token give n weights to read them with,
/// n to write the block's output with and n x n to mix them, by one projection with offsets and three scales.
void add_hyper_connections(LayerWeights& out, const LayerKind& kind, double hidden) {
  const double n = kind.streams, mixes = n * n + 2.0 * n;
  if (!std::holds_alternative<NoMixer>(kind.mixer)) {
    out.matrices.push_back({.name = "hyper_mixer", .k = n * hidden, .n = mixes, .role = WeightRole::kOther});
    out.vectors += mixes + 3.0;
  }
  if (!std::holds_alternative<NoFeedForward>(kind.feed_forward)) {
    out.matrices.push_back({.name = "hyper_feed_forward", .k = n * hidden, .n = mixes, .role = WeightRole::kOther});
    out.vectors += mixes + 3.0;
  }
}

void add_dense(LayerWeights& out, const std::string& prefix, double inter, bool gated, bool bias, double hidden,
               const Sharding& s) {
  const double width = split(inter, s.tp);
  const double columns = width * (gated ? 2.0 : 1.0);
  out.matrices.push_back({.name = prefix + (gated ? "gate_up_proj" : "up_proj"), .k = hidden, .n = columns});
  out.matrices.push_back({.name = prefix + "down_proj", .k = width, .n = hidden});
  if (bias) out.vectors += columns + hidden;
}

void add_experts(LayerWeights& out, const ExpertFeedForward& f, double hidden, const Sharding& s) {
  const double width = f.latent > 0 ? f.latent : hidden;
  const double inter = split(f.inter, s.expert_tp());
  const double columns = inter * (f.gated ? 2.0 : 1.0);
  const double resident = split(f.experts, s.ep);
  if (f.experts > 1) {
    out.matrices.push_back({.name = "router",
                            .k = hidden,
                            .n = f.experts,
                            .role = f.float32_router ? WeightRole::kFloat32 : WeightRole::kOther});
  }
  if (f.latent > 0) {
    out.matrices.push_back({.name = "latent_down_proj", .k = hidden, .n = f.latent});
    out.matrices.push_back({.name = "latent_up_proj", .k = f.latent, .n = hidden});
  }
  out.matrices.push_back({.name = "experts_gate_up",
                          .k = width,
                          .n = columns,
                          .role = WeightRole::kExpert,
                          .copies = resident,
                          .used = f.top_k,
                          .projection = false});
  out.matrices.push_back({.name = "experts_down",
                          .k = inter,
                          .n = width,
                          .role = WeightRole::kExpert,
                          .copies = resident,
                          .used = f.top_k,
                          .projection = false});
  if (f.shared_inter > 0) add_dense(out, "shared_", f.shared_inter, f.gated, f.bias, hidden, s);
  if (f.dense_inter > 0) add_dense(out, "", f.dense_inter, f.gated, f.bias, hidden, s);
  if (f.shared_gate) {
    out.matrices.push_back({.name = "shared_gate", .k = hidden, .n = 1, .role = WeightRole::kOther});
  }
  if (f.router_bias && f.experts > 1) out.vectors += f.experts;
  if (f.bias) out.expert_vectors = columns + width;
}

}  // namespace

LayerWeights layer_weights(const ModelSpec& model, const LayerKind& kind, const Sharding& s) {
  LayerWeights out;
  const double hidden = model.hidden;
  std::visit(Overload{[&](const GroupedAttention& a) { add_grouped(out, a, hidden, s); },
                      [&](const LatentAttention& a) { add_latent(out, a, hidden, s); },
                      [&](const StateLayer& a) { add_state(out, a, hidden, s); }, [](const NoMixer&) {}},
             kind.mixer);
  std::visit(Overload{[&](const DenseFeedForward& f) { add_dense(out, "", f.inter, f.gated, f.bias, hidden, s); },
                      [&](const ExpertFeedForward& f) { add_experts(out, f, hidden, s); }, [](const NoFeedForward&) {}},
             kind.feed_forward);
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

double bytes_per_weight(WeightRole role, const Precision& p) {
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

/// Scaled (vLLM's fp8_ds_mla, also SGLang's; FlashMLA's sparse kernel reads nothing else in fp8): latent in fp8, an
/// fp32 scale for each 128 values of it, the rotary part in 16 bit: 512 + 16 + 128 = 656 B.
double latent_bytes(const LatentAttention& a, const Precision& p) {
  if (p.scaled_latents && a.indexer_top_k > 0 && !a.shared_vector && p.kv_cache == Dtype::kFp8) {
    return a.latent_dim + 4.0 * std::ceil(a.latent_dim / 128.0) + 2.0 * a.rope_dim;
  }
  return cached_bytes(p.kv_cache, a.latent_dim + a.rope_dim);
}

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
