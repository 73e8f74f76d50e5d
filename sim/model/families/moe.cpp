// Mixture-of-experts decoders with grouped-query attention.

#include <algorithm>

#include <fmt/format.h>

#include "sim/model/families.h"

namespace roofcast {

/// Mixtral (Jiang et al. 2024): 8 experts in place of the feed-forward block, 2 per token.
ModelSpec read_mixtral(HfConfig& in) { return read_decoder(in, {}); }

/// Phi-3.5-MoE: LayerNorm and biases, but none in the experts.
ModelSpec read_phimoe(HfConfig& in) { return read_decoder(in, {.norm_bias = true}); }

/// Engines multiply these routers in fp32 (vLLM: models/minimax_m2.py, models/glm4_moe.py).
ModelSpec with_float32_router(ModelSpec model) {
  for (LayerKind& layer : model.layers) {
    if (auto* experts = std::get_if<ExpertFeedForward>(&layer.feed_forward)) experts->float32_router = true;
  }
  return model;
}

/// GLM-4.5 (2025): DeepSeek's experts under grouped-query attention.
ModelSpec read_glm4_moe(HfConfig& in) {
  return with_float32_router(read_decoder(in, {.bias_on_output = false, .router_bias = true}));
}

/// MiniMax-M2 (2025): full attention, normed queries and keys, 256 experts. M3 leaves visible only the best blocks of
/// the context, which a small indexer chooses (sparse_attention_config), in all but the first layers.
ModelSpec read_minimax_m2(HfConfig& in) {
  ModelSpec model = with_float32_router(read_decoder(in, {.qk_norm = true}));
  for (LayerKind& layer : model.layers) {
    if (auto* attention = std::get_if<GroupedAttention>(&layer.mixer)) attention->qk_norm_over_heads = true;
  }
  auto sparse = in.reader().optional_child("sparse_attention_config");
  if (!sparse) return model;
  const double visible = sparse->number("sparse_topk_blocks", 0) * sparse->number("sparse_block_size", 0);
  const std::vector<double> where = sparse->numbers("sparse_attention_freq");
  const double heads = sparse->number("sparse_num_index_heads", 0);
  const double dim = sparse->number("sparse_index_dim", 0);
  sparse->ignore_rest();
  ModelSpec rebuilt = model;
  rebuilt.layers.clear();
  rebuilt.order.clear();
  for (std::size_t i = 0; i < model.order.size(); ++i) {
    LayerKind kind = model.layers[static_cast<std::size_t>(model.order[i])];
    auto* attention = std::get_if<GroupedAttention>(&kind.mixer);
    if (attention != nullptr && i < where.size() && where[i] != 0) {
      attention->sparse_tokens = visible;
      attention->index_heads = heads;
      attention->index_dim = dim;
    }
    append_layer(rebuilt, kind);
  }
  return rebuilt;
}

/// gpt-oss (OpenAI 2025): biases everywhere, a learned sink per head, every other layer sees 128 tokens.
ModelSpec read_gpt_oss(HfConfig& in) {
  return read_decoder(in, {.sinks = true, .expert_bias = true, .router_bias = true}, 2);
}

/// Llama 4 (Meta 2025): one routed and one shared expert of the same width; every interleave_moe_layer_step-th
/// layer is sparse. Three layers of four rotate and see only their chunk, the fourth sees everything without rotation.
ModelSpec read_llama4(HfConfig& in) {
  const Traits traits;
  ModelSpec model = start_model(in, traits);
  const int layers = layer_count(in);
  const std::vector<bool> sparse = read_sparse_layers(in, layers);
  const double chunk = in.number({"attention_chunk_size"}, 8192);
  const std::size_t global = static_cast<std::size_t>(in.integer({"no_rope_layer_interval"}, 4));
  ExpertFeedForward experts = read_experts(in, traits);
  experts.shared_inter = experts.inter;
  const DenseFeedForward dense = read_dense(in, traits);
  for (std::size_t i = 0; i < sparse.size(); ++i) {
    GroupedAttention attention = read_attention(in, traits);
    attention.qk_norm = false;  // it is a plain scaling there, without weights
    attention.rotary = (i + 1) % global != 0;
    attention.window = attention.rotary ? chunk : 0.0;
    attention.chunked = attention.rotary;
    append_layer(model, make_layer(attention, sparse[i] ? FeedForward(experts) : FeedForward(dense), traits));
  }
  return model;
}

/// DBRX (Databricks 2024): its sizes stand in attn_config and ffn_config.
ModelSpec read_dbrx(HfConfig& in) {
  Traits traits;
  traits.kv_heads = in.reader().child("attn_config").number("kv_n_heads", kAtLeastOne);
  ConfigReader ffn = in.reader().child("ffn_config");
  ExpertFeedForward experts;
  experts.experts = ffn.number("moe_num_experts", kExpertCount);
  experts.top_k = ffn.number("moe_top_k", Range{1, experts.experts});
  experts.inter = ffn.number("ffn_hidden_size", kAtLeastOne);
  ModelSpec model = start_model(in, traits);
  const GroupedAttention attention = read_attention(in, traits);
  for (int i = layer_count(in); i > 0; --i) append_layer(model, make_layer(attention, experts, traits));
  return model;
}

/// Hunyuan-Large (Sun et al. 2024): one routed and one shared expert; of every cla_share_factor layers the first owns
/// keys and values, the others read them (cross-layer attention, Brandon et al. 2024).
ModelSpec read_hunyuan(HfConfig& in) { return read_decoder(in, {.tied = true, .qk_norm = true}); }

/// Snowflake Arctic (2024): 128 experts parallel to a dense block as wide as the residual stream, in every
/// moe_layer_frequency-th layer; the others have a plain dense block.
ModelSpec read_arctic(HfConfig& in) {
  const Traits traits;
  ModelSpec model = start_model(in, traits);
  ExpertFeedForward experts = read_experts(in, traits);
  if (in.flag({"parallel_attn_mlp_res"}, true)) experts.dense_inter = model.hidden;
  const int layers = layer_count(in);
  const int every = in.integer({"moe_layer_frequency"}, 1);
  if (every < 1 || every > layers) in.fail("moe_layer_frequency", fmt::format("must be in 1..{}", layers));
  for (int i = 1; i <= layers; ++i) {
    const GroupedAttention attention = read_attention(in, traits);
    append_layer(model, i % every == 0 ? make_layer(attention, experts, {.norms = 3})
                                       : make_layer(attention, read_dense(in, traits), traits));
  }
  return model;
}

/// MiMo-V2-Flash (Xiaomi 2025): one layer of six sees everything; the windowed ones have their own head counts and a
/// sink per head. Layer 0 is dense.
ModelSpec read_mimo_v2(HfConfig& in) {
  const Traits traits;
  ModelSpec model = start_model(in, traits);
  const int layers = layer_count(in);
  const std::vector<bool> sparse = read_sparse_layers(in, layers);
  const std::vector<double> windowed = in.numbers({"hybrid_layer_pattern"});
  for (std::size_t i = 0; i < sparse.size(); ++i) {
    GroupedAttention attention = read_attention(in, traits);
    if (i < windowed.size() && windowed[i] != 0) {
      attention.window = in.number({"sliding_window", "sliding_window_size"});
      attention.heads = in.number({"swa_num_attention_heads"}, attention.heads);
      attention.kv_heads = in.number({"swa_num_key_value_heads"}, attention.kv_heads);
      attention.head_dim = in.number({"swa_head_dim"}, attention.head_dim);
      attention.value_dim = in.number({"swa_v_head_dim"}, attention.value_dim);
      attention.sinks = in.flag({"add_swa_attention_sink_bias"}, false);
    }
    const FeedForward block = sparse[i] ? FeedForward(read_experts(in, traits)) : FeedForward(read_dense(in, traits));
    append_layer(model, make_layer(attention, block, traits));
  }
  return model;
}

/// Step-3.5/3.7-Flash (StepFun 2026): normed queries and keys, windows in three layers of four, one shared expert.
ModelSpec read_step3(HfConfig& in) { return read_decoder(in, {.qk_norm = true}); }

/// Laguna (Poolside 2026): normed queries and keys, windows in three layers of four, one shared expert, a routing bias.
/// The gates of its heads (`gating`, hidden x heads weights per layer, 0.01 % of them) are left out.
ModelSpec read_laguna(HfConfig& in) {
  for (const char* key : {"gating", "gating_types", "moe_apply_router_weight_on_input", "use_bidirectional_attention"})
    in.reader().ignore(key);
  return read_decoder(in, {.qk_norm = true, .router_bias = true});
}

}  // namespace roofcast
