// DeepSeek-V2 and V3 (2024), V3.2 (2025), Kimi K2, GLM-5: latent attention, fine-grained experts with shared ones.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/model/families.h"
#include "sim/model/families/cache_sharing.h"

namespace roofcast {
namespace {

LatentAttention read_latent(HfConfig& in) {
  LatentAttention a;
  a.heads = in.number({"num_attention_heads"});
  a.latent_dim = in.number({"kv_lora_rank"});
  a.rope_dim = in.number({"qk_rope_head_dim"});
  a.nope_dim = in.number({"qk_nope_head_dim"});
  a.value_dim = in.number({"v_head_dim"}, std::floor(in.number({"hidden_size"}) / std::max(1.0, a.heads)));
  a.query_rank = in.number({"q_lora_rank"}, 0);
  a.indexer_top_k = in.number({"index_topk"}, 0);
  a.indexer_heads = in.number({"index_n_heads"}, 0);
  a.indexer_dim = in.number({"index_head_dim"}, 0);
  return a;
}

/// Kimi delta attention (Kimi Linear, 2025): a gated delta net whose decay is a vector a head. q, k, v heads x dim
/// wide, each with a convolution; decay and output gate of low rank (or the gate of full rank); beta per head.
StateLayer read_kimi_delta(const GroupedAttention& sizes, double conv_width, bool full_rank_gate) {
  const double width = sizes.heads * sizes.head_dim;
  const double low = sizes.head_dim;
  StateLayer layer;
  layer.mixer.kind = StateMixer::Kind::kGatedDelta;
  layer.mixer.heads = layer.mixer.key_heads = sizes.heads;
  layer.mixer.key_dim = layer.mixer.value_dim = sizes.head_dim;
  layer.mixer.conv_width = conv_width;
  layer.mixer.conv_channels = 3 * width;
  layer.mixer.chunk = 64;
  layer.in_features = 3 * width + low + (full_rank_gate ? width : low) + sizes.heads;
  layer.out_features = width;
  layer.extra_projection = (full_rank_gate ? 1.0 : 2.0) * low * width;
  layer.extra_parameters = layer.extra_projection + 3 * width * conv_width + width + sizes.heads + low;
  return layer;
}

/// One layer of DeepSeek-V4: every head attends to one shared vector of head_dim a token, of the last 128 tokens and
/// of groups of `ratio` tokens compressed to one; where ratio is 4 an indexer chooses among the groups.
LatentAttention read_compressed(HfConfig& in, double ratio) {
  LatentAttention a;
  a.heads = in.number({"num_attention_heads"});
  a.rope_dim = in.number({"qk_rope_head_dim"});
  a.value_dim = in.number({"head_dim"});
  a.latent_dim = a.nope_dim = a.value_dim - a.rope_dim;
  a.query_rank = in.number({"q_lora_rank"}, 0);
  a.shared_vector = true;
  a.window = in.number({"sliding_window"});
  a.compression = std::max(1.0, ratio);
  if (ratio == 4) {
    a.indexer_top_k = in.number({"index_topk"}, 0);
    a.indexer_heads = in.number({"index_n_heads"}, 0);
    a.indexer_dim = in.number({"index_head_dim"}, 0);
  }
  a.output_groups = in.number({"o_groups"}, 0);
  a.output_rank = in.number({"o_lora_rank"}, 0);
  return a;
}

}  // namespace

/// MiniCPM3 (2024) has the attention without the experts. Latents that s layers share: cross-layer latent attention
/// (CLLA, arXiv:2410.15252).
ModelSpec read_deepseek(HfConfig& in) {
  const Traits traits{.tied = in.model_type() == "minicpm3"};
  ModelSpec model = start_model(in, traits);
  const int layers = layer_count(in);
  const bool routed = in.has({"n_routed_experts", "num_local_experts", "num_experts"});
  std::vector<bool> sparse(static_cast<std::size_t>(layers), false);
  if (routed) sparse = read_sparse_layers(in, layers);
  // GLM-5.2: a "shared" layer reuses the tokens that the last "full" one chose.
  const std::vector<std::string> indexers = in.texts({"indexer_types"});
  ExpertFeedForward experts;
  if (routed) experts = read_experts(in, traits);
  experts.router_bias = in.text({"topk_method"}, "") == "noaux_tc";
  const DenseFeedForward dense = read_dense(in, traits);
  const auto share = static_cast<std::size_t>(share_factor(in, 1));
  for (std::size_t i = 0; i < sparse.size(); ++i) {
    LatentAttention attention = read_latent(in);
    if (share > 1 && attention.indexer_top_k > 0)
      in.fail("cla_share_factor", "layers whose indexer chooses among latents keep their own");
    attention.owns_cache = i % share == 0;
    if (i < indexers.size() && indexers[i] == "shared") attention.indexer_heads = attention.indexer_dim = 0;
    append_layer(model, make_layer(attention, sparse[i] ? FeedForward(experts) : FeedForward(dense), traits));
  }
  return model;
}

/// Kimi Linear (Moonshot 2025) and Kimi K3: three Kimi delta attentions, then one latent attention without rotation;
/// DeepSeek's experts, in K3 on a narrower hidden vector.
ModelSpec read_kimi_linear(HfConfig& in) {
  const Traits traits{.router_bias = true};
  ModelSpec model = start_model(in, traits);
  const int layers = layer_count(in);
  const std::vector<bool> sparse = read_sparse_layers(in, layers);
  ConfigReader linear = in.reader().child("linear_attn_config");
  const std::vector<double> full = linear.numbers("full_attn_layers");  // counted from 1
  linear.ignore("kda_layers");
  const GroupedAttention sizes{.heads = linear.number("num_heads", kAtLeastOne),
                               .head_dim = linear.number("head_dim", kAtLeastOne)};
  const StateLayer delta =
      read_kimi_delta(sizes, linear.number("short_conv_kernel_size", 4), linear.boolean("use_full_rank_gate", false));
  LatentAttention latent = read_latent(in);
  latent.output_gate = in.flag({"mla_use_output_gate"}, false);
  for (std::size_t i = 0; i < sparse.size(); ++i) {
    const bool attends = std::find(full.begin(), full.end(), static_cast<double>(i + 1)) != full.end();
    const FeedForward block = sparse[i] ? FeedForward(read_experts(in, traits)) : FeedForward(read_dense(in, traits));
    append_layer(model, make_layer(attends ? Mixer(latent) : Mixer(delta), block, traits));
  }
  if (in.has({"attn_res_block_size"}))
    model.assumptions.emplace_back("attention over earlier layers' residuals is left out");
  return model;
}

/// LongCat-Flash (Meituan 2025, arXiv:2509.01322, section 2): a layer has two latent attentions, each with a dense
/// block after it, and experts next to the first. Some of a token's experts do nothing: on average as
/// many as there are of them among all.
ModelSpec read_longcat(HfConfig& in) {
  const Traits traits{.router_bias = true};
  ModelSpec model = start_model(in, traits);
  const DenseFeedForward dense = read_dense(in, traits);
  ExpertFeedForward experts = read_experts(in, traits);
  const double idle = in.number({"zero_expert_num"}, 0);
  experts.top_k = std::max(1.0, std::round(experts.top_k * experts.experts / (experts.experts + idle)));
  experts.dense_inter = dense.inter;
  const LatentAttention attention = read_latent(in);
  for (int i = layer_count(in); i > 0; --i) {
    append_layer(model, make_layer(attention, experts, traits));
    append_layer(model, make_layer(attention, dense, traits));
  }
  model.extra_parameters += layer_count(in) * idle * model.hidden;  // of the routers
  if (idle > 0)
    model.assumptions.push_back(fmt::format("{} of the chosen experts do nothing on average: {} of {}",
                                            in.number({"moe_topk"}, 0) - experts.top_k, idle, experts.experts + idle));
  return model;
}

/// DeepSeek-V4 (2026): compressed attention with windows, experts in every layer.
ModelSpec read_deepseek_v4(HfConfig& in) {
  const Traits traits{.router_bias = true};
  ModelSpec model = start_model(in, traits);
  const std::vector<double> ratios = in.numbers({"compress_ratios"});
  const double streams = std::max(1.0, in.number({"hc_mult"}, 1));
  const ExpertFeedForward experts = read_experts(in, traits);
  for (std::size_t i = 0; i < static_cast<std::size_t>(layer_count(in)); ++i) {
    const double ratio = i < ratios.size() ? ratios[i] : 0.0;
    LayerKind layer = make_layer(read_compressed(in, ratio), experts, traits);
    layer.streams = streams;
    append_layer(model, layer);
  }
  if (streams > 1) model.extra_parameters += streams * (streams * model.hidden + 1.0) + 1.0;  // the last mix
  model.assumptions.emplace_back("a compressor is two projections of hidden to the cached vector");
  return model;
}

}  // namespace roofcast
