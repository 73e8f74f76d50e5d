// Models whose mixers keep a constant state, alone or between attention layers.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/model/families.h"
#include "sim/model/families/state_layers.h"

namespace roofcast {

/// Mamba (Gu, Dao 2023) and Falcon-Mamba: nothing but state-space layers.
ModelSpec read_mamba1(HfConfig& in) {
  const Traits traits{.tied = true, .norms = 1};
  ModelSpec model = start_model(in, traits);
  const StateLayer layer = read_mamba1_layer(in);
  for (int i = layer_count(in); i > 0; --i) append_layer(model, make_layer(layer, NoFeedForward{}, traits));
  return model;
}

/// S4 and S4D, with a feed-forward block behind each where the config has its width.
ModelSpec read_s4(HfConfig& in) {
  const bool blocks = in.has({"intermediate_size"});
  const Traits traits{.tied = true, .mlp_bias = true, .norm_bias = true, .gated = false, .norms = blocks ? 2.0 : 1.0};
  ModelSpec model = start_model(in, traits);
  const StateLayer layer = read_s4_layer(in);
  const FeedForward block = blocks ? FeedForward(read_dense(in, traits)) : FeedForward(NoFeedForward{});
  for (int i = layer_count(in); i > 0; --i) append_layer(model, make_layer(layer, block, traits));
  return model;
}

/// Mamba-2 (Dao, Gu 2024).
ModelSpec read_mamba2(HfConfig& in) {
  const Traits traits{.tied = true, .norms = 1};
  ModelSpec model = start_model(in, traits);
  const StateLayer layer = read_mamba2_layer(in);
  for (int i = layer_count(in); i > 0; --i) append_layer(model, make_layer(layer, NoFeedForward{}, traits));
  return model;
}

/// Jamba (Lieber et al. 2024): one attention layer in eight, experts in every other layer.
ModelSpec read_jamba(HfConfig& in) {
  const Traits traits{.rotary = false};
  ModelSpec model = start_model(in, traits);
  const int layers = layer_count(in);
  const int attention_every = in.integer({"attn_layer_period"}, 8);
  const int attention_first = in.integer({"attn_layer_offset"}, 4);
  const int experts_every = in.integer({"expert_layer_period"}, 2);
  const int experts_first = in.integer({"expert_layer_offset"}, 1);
  if (attention_every < 1 || experts_every < 1) in.fail("attn_layer_period", "periods must be at least 1");
  StateLayer state = read_mamba1_layer(in);
  state.extra_parameters += in.number({"mamba_dt_rank"}) + 2.0 * state.mixer.key_dim;  // norms of dt, B and C
  for (int i = 0; i < layers; ++i) {
    const bool attends = i % attention_every == attention_first;
    const bool routed = i % experts_every == experts_first;
    const FeedForward block = routed ? FeedForward(read_experts(in, traits)) : FeedForward(read_dense(in, traits));
    append_layer(model, make_layer(attends ? Mixer(read_attention(in, traits)) : Mixer(state), block, traits));
  }
  return model;
}

/// Falcon-H1 (TII 2025): Mamba-2 and attention read one norm side by side, a gated feed-forward block follows. A layer
/// is written as two: the state-space half under the norm, then the attention half without one of its own.
ModelSpec read_falcon_h1(HfConfig& in) {
  const Traits traits;
  ModelSpec model = start_model(in, traits);
  for (int i = layer_count(in); i > 0; --i) {
    append_layer(model, make_layer(read_mamba2_layer(in), NoFeedForward{}, {.norms = 1}));
    append_layer(model, make_layer(read_attention(in, traits), read_dense(in, traits), {.norms = 1}));
  }
  return model;
}

/// Nemotron-H and Nemotron 3 (NVIDIA 2025): one block per layer by a pattern: M Mamba-2, * attention, - feed-forward,
/// E experts. Feed-forward blocks are squared ReLU without a gate.
ModelSpec read_nemotron_h(HfConfig& in) {
  const Traits traits{.gated = false, .rotary = false, .norms = 1};
  ModelSpec model = start_model(in, traits);
  std::string pattern = in.text({"hybrid_override_pattern"}, "");
  for (const std::string& word : in.texts({"layers_block_type", "layer_types"})) {
    pattern += word == "mamba" ? 'M' : word == "attention" ? '*' : word == "moe" ? 'E' : '-';
  }
  if (pattern.empty()) in.fail("hybrid_override_pattern", "missing, and no 'layers_block_type' either");
  const int layers = in.integer({"num_hidden_layers"}, 0), blocks = static_cast<int>(pattern.size());
  if (layers > 0 && layers != blocks)
    in.fail("num_hidden_layers",
            fmt::format("'num_hidden_layers' is {}, but the pattern of layers has {}: change both", layers, blocks));
  for (char block : pattern) {
    switch (block) {
      case 'M':
        append_layer(model, make_layer(read_mamba2_layer(in), NoFeedForward{}, traits));
        break;
      case '*':
        append_layer(model, make_layer(read_attention(in, traits), NoFeedForward{}, traits));
        break;
      case '-':
        append_layer(model, make_layer(NoMixer{}, read_dense(in, traits), traits));
        break;
      case 'E': {
        ExpertFeedForward experts = read_experts(in, traits);
        experts.router_bias = true;
        append_layer(model, make_layer(NoMixer{}, experts, traits));
        break;
      }
      default:
        in.fail("hybrid_override_pattern", std::string("unknown kind of layer '") + block + "' (known: M * - E)");
    }
  }
  return model;
}

/// Granite 4 and Bamba (IBM 2025): Mamba-2 layers between attention layers, each with a feed-forward block.
ModelSpec read_granite_hybrid(HfConfig& in) {
  Traits traits{.tied = true, .rotary = in.text({"position_embedding_type"}, "") == "rope"};
  ModelSpec model = start_model(in, traits);
  const int layers = layer_count(in);
  const std::vector<std::string> types = in.texts({"layer_types", "layers_block_type"});
  const std::vector<double> attends = in.numbers({"attn_layer_indices"});
  const bool routed = in.has({"num_local_experts"}) && in.number({"num_local_experts"}) > 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(layers); ++i) {
    bool attention = i < types.size() && types[i] == "attention";
    for (double at : attends) attention = attention || at == static_cast<double>(i);
    const FeedForward block =
        routed ? FeedForward(read_experts(in, traits))
               : FeedForward(DenseFeedForward{.inter = in.number({"shared_intermediate_size", "intermediate_size"})});
    append_layer(
        model, make_layer(attention ? Mixer(read_attention(in, traits)) : Mixer(read_mamba2_layer(in)), block, traits));
  }
  return model;
}

/// Qwen3-Next (2025) and Qwen3.5 (2026): three gated delta nets, then one gated attention; a gated shared expert.
ModelSpec read_qwen3_next(HfConfig& in) {
  const Traits traits{.qk_norm = true, .output_gate = true, .shared_gate = true};
  ModelSpec model = start_model(in, traits);
  const int layers = layer_count(in);
  const std::vector<std::string> types = in.texts({"layer_types"});
  const std::size_t every = static_cast<std::size_t>(std::max(1, in.integer({"full_attention_interval"}, 4)));
  const bool routed = in.has({"num_experts"}) && in.number({"num_experts"}) > 0;
  const std::vector<bool> sparse =
      routed ? read_sparse_layers(in, layers) : std::vector<bool>(static_cast<std::size_t>(layers), false);
  for (std::size_t i = 0; i < sparse.size(); ++i) {
    const bool full = i < types.size() ? types[i] == "full_attention" : (i + 1) % every == 0;
    const FeedForward block = sparse[i] ? FeedForward(read_experts(in, traits)) : FeedForward(read_dense(in, traits));
    append_layer(
        model, make_layer(full ? Mixer(read_attention(in, traits)) : Mixer(read_gated_delta_layer(in)), block, traits));
  }
  return model;
}

/// The width of LFM2's dense blocks: two thirds of what is written, times a factor, rounded up to a multiple.
double lfm2_inter(HfConfig& in) {
  double inter = in.number({"block_ff_dim", "intermediate_size"});
  if (!in.flag({"block_auto_adjust_ff_dim"}, true)) return inter;
  const double multiple = std::max(1.0, in.number({"block_multiple_of"}, 256));
  inter = std::floor(in.factor({"block_ffn_dim_multiplier"}, 1) * std::floor(2 * inter / 3));
  return multiple * std::ceil(inter / multiple);
}

/// LFM2 (Liquid AI 2025, arXiv:2511.23404): short convolutions between attention layers; in LFM2-MoE experts after the
/// first layers.
ModelSpec read_lfm2(HfConfig& in) {
  const Traits traits{.tied = true, .qk_norm = true};
  ModelSpec model = start_model(in, traits);
  const int layers = layer_count(in);
  const bool routed = in.has({"num_experts"});
  const int dense_layers = routed ? in.integer({"num_dense_layers"}, 2) : layers;
  const DenseFeedForward dense{.inter = routed ? in.number({"intermediate_size"}) : lfm2_inter(in)};
  const std::vector<std::string> types = in.texts({"layer_types"});
  const std::vector<double> attends = in.numbers({"full_attn_idxs"});
  if (types.size() < static_cast<std::size_t>(layers) && attends.empty())
    in.fail("layer_types", "must say for each layer whether it is conv or full_attention");
  for (int i = 0; i < layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool attention = at < types.size() ? types[at] == "full_attention"
                                             : std::find(attends.begin(), attends.end(), i) != attends.end();
    FeedForward block = dense;
    if (i >= dense_layers) {
      ExpertFeedForward experts = read_experts(in, traits);
      experts.router_bias = in.flag({"use_expert_bias"}, true);
      block = experts;
    }
    append_layer(model, make_layer(attention ? Mixer(read_attention(in, traits)) : Mixer(read_convolution_layer(in)),
                                   block, traits));
  }
  return model;
}

/// RecurrentGemma (Botev et al. 2024, arXiv:2404.07839): two RG-LRU layers, then one of attention to a window; the
/// feed-forward block is half of `intermediate_size` wide (transformers, modeling_recurrent_gemma.py).
ModelSpec read_recurrent_gemma(HfConfig& in) {
  const Traits traits{.tied = true, .output_bias = true};
  ModelSpec model = start_model(in, traits);
  std::vector<std::string> types = in.texts({"_block_types", "block_types", "layers_block_type"});
  if (types.empty()) types = {"recurrent", "recurrent", "attention"};
  GroupedAttention attention = read_attention(in, traits);
  attention.window = in.number({"attention_window_size"}, 2048);
  const StateLayer recurrent = read_rg_lru_layer(in);
  const DenseFeedForward block{.inter = std::floor(in.number({"intermediate_size"}) / 2), .gated = true, .bias = true};
  for (std::size_t i = 0; i < static_cast<std::size_t>(layer_count(in)); ++i) {
    const bool attends = types[i % types.size()] == "attention";
    append_layer(model, make_layer(attends ? Mixer(attention) : Mixer(recurrent), block, traits));
  }
  return model;
}

/// RWKV-4 to 7 (Peng et al. 2023-25): a state in place of attention, and a feed-forward block of squared ReLU whose
/// output has a gate of its own up to RWKV-6. A norm stands before the first layer.
ModelSpec read_rwkv(HfConfig& in) {
  const Traits traits{.norm_bias = true, .gated = false};
  const char last = in.model_type().back();
  const int version = last >= '5' && last <= '7' ? last - '0' : 4;
  ModelSpec model = start_model(in, traits);
  model.final_norms = 2;
  const double hidden = model.hidden;
  const double usual = version == 5 || version == 6 ? std::floor(hidden * 3.5 / 32) * 32 : 4 * hidden;
  const DenseFeedForward block{.inter = in.number({"intermediate_size"}, usual), .gated = false};
  for (int i = 0; i < layer_count(in); ++i) {
    LayerKind kind = make_layer(read_rwkv_layer(in, version, i == 0), block, traits);
    if (version < 7) kind.extra_parameters = hidden * hidden;
    append_layer(model, kind);
  }
  return model;
}

/// Zamba2 (Glorioso et al. 2024, arXiv:2411.15242): Mamba-2 layers; before some of them a block of attention and
/// feed-forward, of which there are two in turn, that reads the hidden state and the embedding side by side. Its
/// low-rank changes and a projection of its output are each such layer's own (transformers, modeling_zamba2.py).
ModelSpec read_zamba2(HfConfig& in) {
  const Traits traits{.tied = true, .rotary = in.flag({"use_mem_rope"}, false), .norms = 1};
  ModelSpec model = start_model(in, traits);
  const double hidden = model.hidden, heads = in.number({"num_attention_heads"});
  GroupedAttention attention = read_attention(in, {.rotary = traits.rotary});
  attention.head_dim = attention.value_dim = in.number({"attention_head_dim"}, 2 * hidden / heads);
  attention.input_dim = in.number({"attention_hidden_size"}, 2 * hidden);
  const DenseFeedForward block{.inter = in.number({"intermediate_size"}, 4 * hidden)};
  const double rank = in.number({"adapter_rank"}, 128);
  double own = hidden;  // columns over the hidden state
  if (in.flag({"use_shared_mlp_adapter"}, false)) own += rank * (1 + 2 * block.inter / hidden);
  if (in.flag({"use_shared_attention_adapter"}, false)) own += 3 * rank * (2 + 2);
  const StateLayer state = read_mamba2_layer(in);
  const std::vector<std::string> types = in.texts({"layers_block_type", "layer_types"});
  const std::vector<double> ids = in.numbers({"hybrid_layer_ids"});
  if (types.empty() && ids.empty()) in.fail("hybrid_layer_ids", "missing: the layers that have a shared block");
  for (int i = 0; i < layer_count(in); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool hybrid =
        types.empty() ? std::find(ids.begin(), ids.end(), i) != ids.end() : at < types.size() && types[at] == "hybrid";
    LayerKind mamba = make_layer(state, NoFeedForward{}, traits);
    if (hybrid) {
      LayerKind shared = make_layer(attention, block, {.norms = 3});  // one of them twice as wide
      shared.weight_sets = in.number({"num_mem_blocks"}, 1);
      append_layer(model, shared);
      mamba.extra_parameters = own * hidden;
    }
    append_layer(model, mamba);
  }
  return model;
}

/// MiniMax-01 and M1 (2025): seven lightning attentions, then one softmax attention; 32 experts, 2 per token.
ModelSpec read_minimax_01(HfConfig& in) {
  const Traits traits;
  ModelSpec model = start_model(in, traits);
  const int layers = layer_count(in);
  std::vector<double> softmax = in.numbers({"attn_type_list"});
  const std::vector<std::string> types = in.texts({"layer_types"});
  for (const std::string& type : types) softmax.push_back(type == "full_attention" ? 1.0 : 0.0);
  if (softmax.size() < static_cast<std::size_t>(layers)) {
    in.fail("attn_type_list", "must say for each layer whether it is softmax (1) or lightning (0)");
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(layers); ++i) {
    const GroupedAttention attention = read_attention(in, traits);
    const Mixer mixer = softmax[i] != 0 ? Mixer(attention) : Mixer(lightning_layer(attention));
    append_layer(model, make_layer(mixer, read_experts(in, traits), traits));
  }
  return model;
}

}  // namespace roofcast
