// The generic decoder: most families, and the fallback for unknown ones.

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "sim/model/families.h"
#include "sim/model/families/cache_sharing.h"

namespace roofcast {
namespace {

/// A single expert is a dense block (Hunyuan's dense models have num_experts: 1).
bool has_experts(HfConfig& in) {
  const Names count{"n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts"};
  if (!in.has(count)) return false;
  const double experts = in.number(count);
  return experts > 1 || (experts == 1 && in.has({"num_experts_per_tok", "moe_topk", "moe_k"}));
}

/// transformers omits keys that equal the default of all configs, such as tie_word_embeddings: true
/// (configuration_utils.py, to_diff_dict), so an absent key means tied. Classes whose own default is false, and
/// hand-written configs for them, do not follow this.
bool ties_unless_said(std::string_view model_type) {
  static constexpr std::array<std::string_view, 3> kUntied{"persimmon", "fuyu", "open-llama"};
  return std::find(kUntied.begin(), kUntied.end(), model_type) == kUntied.end();
}

/// Parts that a generic decoder cannot represent, by key prefix.
void note_left_out(HfConfig& in, std::vector<std::string>& said) {
  for (std::string_view part : {"mamba", "ssm", "linear_attn", "index_", "altup", "cross_attention_layers"}) {
    for (const std::string& key : in.reader().keys()) {
      if (key.starts_with(part)) {
        said.push_back(fmt::format("'{}' and what belongs to it is left out", key));
        break;
      }
    }
  }
}

/// Readers that an unknown config may resemble, by keys that only such configs have; the first match counts.
struct Likeness {
  std::vector<std::string_view> keys;
  std::string_view is;
  ModelSpec (*read)(HfConfig&);
};
const std::vector<Likeness>& likenesses() {
  static const std::vector<Likeness> kLikenesses{
      {{"mamba_d_ssm"}, "Falcon-H1 (Mamba-2 in parallel with attention in every layer)", read_falcon_h1},
      {{"linear_num_value_heads"}, "Qwen3-Next (gated delta nets between gated attention layers)", read_qwen3_next},
      {{"hybrid_override_pattern"}, "Nemotron-H (one block per layer by a pattern)", read_nemotron_h},
      {{"mamba_d_state", "attn_layer_period"}, "Jamba (Mamba-1 between attention layers)", read_jamba},
      {{"mamba_d_state", "mamba_dt_rank"}, "Jamba (Mamba-1 between attention layers)", read_jamba},
      {{"mamba_d_state", "layer_types"}, "Granite 4 (Mamba-2 between attention layers)", read_granite_hybrid},
      {{"mamba_d_state", "attn_layer_indices"}, "Bamba (Mamba-2 between attention layers)", read_granite_hybrid},
      {{"kv_lora_rank", "qk_rope_head_dim"}, "DeepSeek (latent attention)", read_deepseek},
  };
  return kLikenesses;
}

const Likeness* likeness_of(const HfConfig& in) {
  for (const Likeness& like : likenesses()) {
    bool all = true;
    for (std::string_view key : like.keys) all = all && in.has({key});
    if (all) return &like;
  }
  return nullptr;
}

/// Throws ConfigError for mixers that no reader supports: a guess would be wrong for most of the layers.
void refuse_unknown_mixers(HfConfig& in) {
  if (!in.has({"num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"})) {
    in.fail("model_type",
            fmt::format("'{}' is not known, and without attention heads it cannot be taken for a transformer",
                        in.model_type()));
  }
  for (std::string_view key : {"lru_width", "conv_L_cache", "n_mamba_heads", "rwkv_version", "xlstm_block_dtype"}) {
    if (in.has({key})) {
      in.fail(key,
              fmt::format("model_type '{}' is not known, and mixers of this kind cannot be guessed", in.model_type()));
    }
  }
}

/// Feed-forward blocks with SiLU or Gemma's GELU usually have a gate, others none.
bool gate_with(const std::string& activation) {
  return activation.empty() || activation.find("silu") != std::string::npos ||
         activation.find("swi") != std::string::npos || activation.find("glu") != std::string::npos ||
         activation == "gelu_pytorch_tanh";
}

/// Reads head counts per layer, if they differ (Laguna).
void read_heads_by_layer(HfConfig& in, std::vector<GroupedAttention>& attention) {
  const auto read = [&](std::string_view key, double GroupedAttention::*count) {
    const std::vector<double> heads = in.numbers({key});
    if (heads.empty()) return;
    if (heads.size() < attention.size())
      in.fail(key, fmt::format("names {} layers of {}", heads.size(), attention.size()));
    for (std::size_t i = 0; i < attention.size(); ++i) {
      if (heads[i] < 1) in.fail(key, "every layer must have at least 1");
      attention[i].*count = heads[i];
    }
  };
  read("num_attention_heads_per_layer", &GroupedAttention::heads);
  read("num_key_value_heads_per_layer", &GroupedAttention::kv_heads);
}

}  // namespace

ModelSpec read_decoder(HfConfig& in, const Traits& traits, int window_pattern) {
  ModelSpec model = start_model(in, traits);
  const int layers = layer_count(in);
  const std::vector<double> windows = read_windows(in, layers, window_pattern);
  const bool routed = has_experts(in);
  const std::vector<bool> sparse =
      routed ? read_sparse_layers(in, layers) : std::vector<bool>(static_cast<std::size_t>(layers), false);
  std::vector<GroupedAttention> attention(windows.size(), read_attention(in, traits));
  for (std::size_t i = 0; i < windows.size(); ++i) attention[i].window = windows[i];
  read_heads_by_layer(in, attention);
  share_caches(in, attention);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const FeedForward block = sparse[i] ? FeedForward(read_experts(in, traits)) : FeedForward(read_dense(in, traits));
    append_layer(model, make_layer(attention[i], block, traits));
  }
  return model;
}

ModelSpec read_unknown(HfConfig& in) {
  if (const Likeness* like = likeness_of(in)) {
    ModelSpec model = like->read(in);
    model.assumptions.insert(model.assumptions.begin(),
                             fmt::format("model_type '{}' is not known: taken for {}", in.model_type(), like->is));
    return model;
  }
  refuse_unknown_mixers(in);
  const std::string activation = in.text({"hidden_act", "activation_function", "hidden_activation"}, "");
  const bool gpt = in.has({"n_embd"}) && in.has({"n_layer"});
  Traits traits{.tied = ties_unless_said(in.model_type()), .gated = !gpt && gate_with(activation)};
  if (gpt) traits.qkv_bias = traits.output_bias = traits.mlp_bias = traits.norm_bias = true, traits.inter_factor = 4;
  ModelSpec model = read_decoder(in, traits);
  std::vector<std::string>& said = model.assumptions;
  said.push_back(fmt::format(
      "model_type '{}' is not known: taken for a {}-like decoder ({}, feed-forward {} gate{}, "
      "rotary attention, two norms per layer)",
      in.model_type(), gpt ? "GPT" : "Llama", gpt ? "LayerNorm, biases" : "RMSNorm",
      traits.gated ? "with a" : "without", activation.empty() ? "" : fmt::format(" as '{}' has", activation)));
  if (!in.has({"num_key_value_heads", "n_head_kv", "num_kv_heads"}))
    said.emplace_back("as many key-value heads as heads");
  if (!in.has({"head_dim", "kv_channels"})) said.emplace_back("head_dim is hidden_size over heads");
  if (!in.has({"tie_word_embeddings", "tie_embeddings"}))
    said.emplace_back(traits.tied ? "the head is the embedding, as where transformers leaves tie_word_embeddings out"
                                  : "the head has its own matrix");
  if (!gpt && !in.has({"attention_bias", "qkv_bias"})) said.emplace_back("projections have no biases");
  if (in.number({"sliding_window", "sliding_window_size"}, 0) > 0 && !in.has({"layer_types", "use_sliding_window"}) &&
      !in.has({"sliding_window_pattern", "_sliding_window_pattern"})) {
    said.emplace_back("every layer sees the window and no more");
  }
  if (has_experts(in)) {
    said.emplace_back("every layer has experts unless the config says otherwise");
    if (!in.has({"moe_intermediate_size"})) said.emplace_back("experts are intermediate_size wide");
  }
  note_left_out(in, said);
  return model;
}

}  // namespace roofcast
