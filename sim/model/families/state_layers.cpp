#include "sim/model/families/state_layers.h"

#include <cmath>

namespace roofcast {
namespace {

/// The recurrent state is kept in fp32 unless the config says otherwise, as the reference implementations do.
Dtype state_dtype(HfConfig& in) {
  const std::string name = in.text({"mamba_ssm_cache_dtype", "mamba_ssm_dtype"}, "float32");
  return name == "bfloat16" || name == "float16" ? Dtype::kBf16 : Dtype::kFp32;
}

double hidden_of(HfConfig& in) { return in.number({"hidden_size", "d_model"}); }

}  // namespace

/// Mamba-1: in_proj h -> 2 d; a convolution per channel; x_proj d -> r + 2 N gives dt, B and C; dt_proj r -> d;
/// A (d x N), D (d); out_proj d -> h. State: N values per channel.
StateLayer read_mamba1_layer(HfConfig& in) {
  const double hidden = hidden_of(in);
  const bool jamba = in.model_type() == "jamba";  // there intermediate_size is the feed-forward's
  const double expanded = in.factor({"mamba_expand", "expand"}, 2) * hidden;
  const double inner = jamba ? expanded : in.number({"intermediate_size", "d_inner"}, expanded);
  const double n = in.number({"mamba_d_state", "state_size", "d_state"}, 16);
  const double width = in.number({"mamba_d_conv", "conv_kernel", "d_conv"}, 4);
  const bool automatic = in.text({"mamba_dt_rank", "time_step_rank"}, "auto") == "auto";
  const double rank = automatic ? std::ceil(hidden / 16.0) : in.number({"mamba_dt_rank", "time_step_rank"});
  StateLayer layer;
  layer.mixer.kind = StateMixer::Kind::kMamba1;
  layer.mixer.heads = inner;
  layer.mixer.key_heads = 1;
  layer.mixer.key_dim = n;
  layer.mixer.value_dim = 1;
  layer.mixer.conv_width = width;
  layer.mixer.conv_channels = inner;
  layer.mixer.state = state_dtype(in);
  layer.in_features = 2 * inner;
  layer.out_features = inner;
  layer.extra_projection = inner * (rank + 2 * n) + rank * inner;
  const bool conv_bias = in.flag({"mamba_conv_bias", "use_conv_bias"}, true);
  layer.extra_parameters = layer.extra_projection + inner * (width + (conv_bias ? 1 : 0)) + inner * (n + 2);
  return layer;
}

/// Mamba-2: in_proj h -> 2 d + 2 G N + H gives gate, x, B, C and dt; a convolution over x, B, C; a scalar A, D and dt
/// bias per head; a gated norm; out_proj d -> h. State: head_dim x N per head.
StateLayer read_mamba2_layer(HfConfig& in) {
  const double hidden = hidden_of(in);
  const double dim = in.number({"mamba_head_dim", "mamba_d_head", "mamba_headdim", "head_dim", "headdim"}, 64);
  const double heads = in.number({"mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads"},
                                 in.factor({"mamba_expand", "expand"}, 2) * hidden / dim);
  const double inner = heads * dim;
  const double n = in.number({"ssm_state_size", "mamba_d_state", "state_size", "d_state"}, 128);
  const double groups = in.number({"n_groups", "mamba_n_groups", "mamba_ngroups", "ngroups"}, 1);
  const double width = in.number({"conv_kernel", "mamba_d_conv", "d_conv"}, 4);
  const bool conv_bias = in.flag({"use_conv_bias", "mamba_conv_bias"}, true);
  const bool norm = in.flag({"mamba_rms_norm"}, in.model_type() != "falcon_h1");  // else the gate alone
  StateLayer layer;
  layer.mixer.kind = StateMixer::Kind::kMamba2;
  layer.mixer.heads = heads;
  layer.mixer.key_heads = groups;
  layer.mixer.key_dim = n;
  layer.mixer.value_dim = dim;
  layer.mixer.conv_width = width;
  layer.mixer.conv_channels = inner + 2 * groups * n;
  layer.mixer.chunk = in.number({"chunk_size", "mamba_chunk_size"}, 256);
  layer.mixer.state = state_dtype(in);
  layer.in_features = 2 * inner + 2 * groups * n + heads;
  layer.out_features = inner;
  layer.extra_parameters = layer.mixer.conv_channels * (width + (conv_bias ? 1 : 0)) + 3 * heads + (norm ? inner : 0);
  return layer;
}

/// Gated delta net (Yang et al. 2024) as in Qwen3-Next: projections to q, k (key heads) and v, z (value heads) and to
/// beta and the decay, one of each per value head; a convolution over q, k, v; a norm of the output per head. State:
/// key_dim x value_dim a value head.
StateLayer read_gated_delta_layer(HfConfig& in) {
  const double key_heads = in.number({"linear_num_key_heads"}, 16);
  const double value_heads = in.number({"linear_num_value_heads"}, 32);
  const double key_dim = in.number({"linear_key_head_dim"}, 128);
  const double value_dim = in.number({"linear_value_head_dim"}, 128);
  const double width = in.number({"linear_conv_kernel_dim"}, 4);
  StateLayer layer;
  layer.mixer.kind = StateMixer::Kind::kGatedDelta;
  layer.mixer.heads = value_heads;
  layer.mixer.key_heads = key_heads;
  layer.mixer.key_dim = key_dim;
  layer.mixer.value_dim = value_dim;
  layer.mixer.conv_width = width;
  layer.mixer.conv_channels = 2 * key_heads * key_dim + value_heads * value_dim;
  layer.mixer.chunk = 64;
  layer.mixer.state = state_dtype(in);
  layer.in_features = 2 * key_heads * key_dim + 2 * value_heads * value_dim + 2 * value_heads;
  layer.out_features = value_heads * value_dim;
  layer.extra_parameters = layer.mixer.conv_channels * width + 2 * value_heads + value_dim;
  return layer;
}

/// Gated short convolution (LFM2): in_proj h -> 3 h gives two gates and x; a convolution of the first gate times x, a
/// channel by itself; its output under the second gate; out_proj h -> h. State: the convolution's window.
StateLayer read_convolution_layer(HfConfig& in) {
  const double hidden = hidden_of(in);
  const double width = in.number({"conv_L_cache"}, 3);
  StateLayer layer;
  layer.mixer.kind = StateMixer::Kind::kConvolution;
  layer.mixer.heads = hidden;
  layer.mixer.key_dim = layer.mixer.value_dim = 0;
  layer.mixer.conv_width = width;
  layer.mixer.conv_channels = hidden;
  layer.in_features = 3 * hidden;
  layer.out_features = hidden;
  layer.extra_parameters = hidden * (width + (in.flag({"conv_bias"}, false) ? 5 : 0));  // of all three
  return layer;
}

/// RG-LRU (De et al. 2024, arXiv:2402.19427): two projections h -> r, a convolution of one of them, input and
/// recurrence gates of block-diagonal matrices, a recurrence a channel, its product with the other one under GELU, r ->
/// h; all with biases (transformers, modeling_recurrent_gemma.py). State: a value per channel in fp32.
StateLayer read_rg_lru_layer(HfConfig& in) {
  const double hidden = hidden_of(in);
  const double width = in.number({"lru_width"}, hidden), taps = in.number({"conv1d_width"}, 4);
  const double block = width / in.number({"num_attention_heads"});
  StateLayer layer;
  layer.mixer.kind = StateMixer::Kind::kRgLru;
  layer.mixer.heads = layer.mixer.key_heads = width;
  layer.mixer.key_dim = layer.mixer.value_dim = 1;
  layer.mixer.conv_width = taps;
  layer.mixer.conv_channels = width;
  layer.in_features = 2 * width;
  layer.out_features = width;
  layer.extra_projection = 2 * width * block;
  layer.extra_parameters = layer.extra_projection + 3 * width + width * (taps + 1) + 2 * width + hidden;
  return layer;
}

/// S4 (Gu et al. 2021, arXiv:2111.00396): a linear recurrence per channel, the same for every token, over N / 2 complex
/// states that are N values; then GELU and h -> 2 h, one half of which gates the other. Parameters per channel, in real
/// values: the diagonal, its low-rank correction, B and C of N each, a time step and D. S4D (arXiv:2206.11893) has the
/// diagonal and C alone.
StateLayer read_s4_layer(HfConfig& in) {
  const double hidden = hidden_of(in), n = in.number({"state_size", "d_state"}, 64);
  StateLayer layer;
  layer.mixer.kind = StateMixer::Kind::kS4;
  layer.mixer.heads = hidden;
  layer.mixer.key_heads = 0;
  layer.mixer.key_dim = n;
  layer.mixer.value_dim = 1;
  layer.mixer.conv_width = 1;
  layer.mixer.conv_channels = 0;
  layer.out_features = hidden;
  layer.gated_output = true;
  layer.extra_parameters = hidden * ((in.model_type() == "s4d" ? 2 : 4) * n + 2) + 2 * hidden;
  return layer;
}

/// Rank of one of RWKV-7's low-rank projections where the config does not say (fla, configuration_rwkv7.py).
double rwkv7_rank(HfConfig& in, Names names, double scale, double power) {
  const double usual = std::round(scale * std::pow(hidden_of(in), power) / 32) * 32;
  return in.number(names, std::max(32.0, usual));
}

/// RWKV: projections of tokens mixed with the one before them (two windows of h), and a state.
///   4      r, k, v, o; three values per channel                      arXiv:2305.13048
///   5, 6   r, k, v, g, o; d x d per head; 6 mixes and decays by the  arXiv:2404.05892; transformers' port in
///          token, by low-rank matrices of 32 and 64                  RWKV/rwkv-6-world-1b6, modeling_rwkv6.py
///   7      r, k, v, o; the delta rule; decay, rate, value and gate   arXiv:2503.14456; fla, layers/rwkv7.py
///          by low-rank matrices
StateLayer read_rwkv_layer(HfConfig& in, int version, bool first) {
  constexpr double kMixes = 5, kMixRank = 32, kDecayRank = 64;
  const double hidden = hidden_of(in), width = in.number({"attention_hidden_size", "key_dim"}, hidden);
  StateLayer layer;
  layer.mixer.conv_width = 2;
  layer.mixer.conv_channels = 2 * hidden;
  layer.out_features = width;
  if (version == 4) {
    layer.mixer.kind = StateMixer::Kind::kRwkv4;
    layer.mixer.heads = layer.mixer.key_heads = width;
    layer.mixer.key_dim = 3, layer.mixer.value_dim = 1;
    layer.in_features = 3 * width;
    layer.extra_parameters = 2 * width + 5 * hidden;
    return layer;
  }
  const double dim = in.number({"head_size", "head_dim"}, 64);
  layer.mixer.kind = version == 7 ? StateMixer::Kind::kRwkv7 : StateMixer::Kind::kRwkv6;
  layer.mixer.heads = layer.mixer.key_heads = width / dim;
  layer.mixer.key_dim = layer.mixer.value_dim = dim;
  layer.mixer.chunk = 64;
  layer.in_features = (version == 7 ? 3 : 4) * width;
  if (version == 7) {
    const double values = first ? 0 : rwkv7_rank(in, {"v_low_rank_dim", "value_low_rank_dim"}, 1.3, 0.5);
    const double ranks = rwkv7_rank(in, {"decay_low_rank_dim"}, 1.8, 0.5) +
                         rwkv7_rank(in, {"a_low_rank_dim"}, 1.8, 0.5) +
                         rwkv7_rank(in, {"gate_low_rank_dim"}, 0.6, 0.8) + values;
    layer.extra_projection = 2 * hidden * ranks;
    layer.extra_parameters = layer.extra_projection + (first ? 14 : 15) * hidden;
    return layer;
  }
  if (version == 6) layer.extra_projection = 2 * hidden * (kMixes * kMixRank + kDecayRank);
  layer.extra_parameters = layer.extra_projection + (version == 6 ? 12 : 10) * hidden;
  return layer;
}

/// Lightning attention (Qin et al. 2024): linear attention with a fixed decay per head; q, k, v and an output gate are
/// all heads x head_dim wide; the output is normed. State: head_dim x head_dim a head, in fp32.
StateLayer lightning_layer(const GroupedAttention& attention) {
  const double width = attention.heads * attention.head_dim;
  StateLayer layer;
  layer.mixer.kind = StateMixer::Kind::kLightning;
  layer.mixer.heads = attention.heads;
  layer.mixer.key_heads = attention.heads;
  layer.mixer.key_dim = attention.head_dim;
  layer.mixer.value_dim = attention.head_dim;
  layer.mixer.conv_width = 1;
  layer.mixer.conv_channels = 0;
  layer.mixer.chunk = 256;
  layer.in_features = 4 * width;
  layer.out_features = width;
  layer.extra_parameters = width;
  return layer;
}

}  // namespace roofcast
