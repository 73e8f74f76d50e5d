#include "explore/attention_variant.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "base/config_reader.h"
#include "base/text.h"
#include "sim/model/model_spec.h"

namespace roofcast::explore {
namespace {

constexpr std::array kVariants{
    AttentionVariant{"mha", "as many key-value heads as heads"},
    AttentionVariant{"gqa", "kv_heads key-value heads, each shared by a group of heads"},
    AttentionVariant{"mqa", "one key-value head for all heads"},
    AttentionVariant{"mla", "one latent of 512 and 64 rotary values a token (DeepSeek-V2)"},
    AttentionVariant{"cla", "one cache for cla_share_factor layers, the first of which writes it"},
    AttentionVariant{"window", "every layer sees the last `window` tokens"},
};

constexpr std::array<std::string_view, 4> kKeyValueHeads{"num_key_value_heads", "n_head_kv", "num_kv_heads",
                                                         "multi_query_group_num"};
constexpr std::array<std::string_view, 4> kLayers{"num_hidden_layers", "n_layer", "num_layers", "n_layers"};
constexpr std::array<std::string_view, 3> kHeads{"num_attention_heads", "n_head", "n_heads"};
constexpr std::array<std::string_view, 3> kWidth{"hidden_size", "n_embd", "d_model"};
using Names = std::span<const std::string_view>;

/// The name of this size in the config; the first name if absent.
std::string_view key_in(const ConfigNode& model, Names names) {
  for (std::string_view name : names) {
    if (model.find(name) != nullptr) return name;
  }
  return names.front();
}

[[noreturn]] void refuse(const std::string& model, std::string_view variant, std::string_view why) {
  throw ConfigError(fmt::format("attention: {} cannot become {}: {}", model, variant, why));
}

std::string grouped(ConfigReader& in, const ConfigNode& model, const std::string& name, std::string_view variant,
                    int kv_heads) {
  const auto heads = static_cast<int>(in.integer(key_in(model, kHeads)));
  const int wanted = variant == "mha" ? heads : variant == "mqa" ? 1 : kv_heads;
  if (wanted > heads || heads % wanted != 0)
    refuse(name, variant, fmt::format("kv_heads must divide its {} heads, got {}", heads, wanted));
  return fmt::format("{}: {}", key_in(model, kKeyValueHeads), wanted);
}

/// Only for dense Llama-like decoders: DeepSeek's reader takes the same keys, with every layer dense.
std::string latent(ConfigReader& in, const std::string& name) {
  const std::string type = in.text("model_type", "");
  constexpr std::array<std::string_view, 4> kTypes{"llama", "mistral", "qwen2", "qwen3"};
  if (std::find(kTypes.begin(), kTypes.end(), type) == kTypes.end())
    refuse(name, "mla", "only dense llama, mistral, qwen2 and qwen3 decoders can");
  return fmt::format(
      "model_type: deepseek_v2, kv_lora_rank: 512, qk_rope_head_dim: 64, qk_nope_head_dim: 128, v_head_dim: 128, "
      "n_routed_experts: 1, num_experts_per_tok: 1, first_k_dense_replace: {}",
      in.integer("num_hidden_layers"));
}

/// Throws ConfigError for a change whose key the model's reader does not know; other errors occur when the model is
/// read.
void check_key(const ConfigTree& model, const std::string& name, std::string_view variant, const std::string& changes) {
  const std::string key = changes.substr(0, changes.find(':'));
  try {
    (void)parse_model(overlay(model, parse_config_text("{" + changes + "}", "model")));
  } catch (const ConfigError& error) {
    if (error.message().starts_with(fmt::format("unknown key '{}'", key)))
      refuse(name, variant, "its architecture has no such key");
  }
}

}  // namespace

std::span<const AttentionVariant> attention_variants() { return kVariants; }

std::string with_attention(const ConfigTree& model, std::string_view variant, const AttentionSizes& sizes) {
  ConfigReader in(model, "a model");
  const std::string name = in.text("name");
  if (in.has("base")) refuse(name, variant, fmt::format("it is made from {}; choose that one", in.text("base")));
  std::string changes;
  if (variant == "cla") {
    changes = fmt::format("cla_share_factor: {}", sizes.share_factor);
    if (in.has("use_cla")) changes += ", use_cla: true";
    check_key(model, name, variant, changes);
  } else if (in.has("kv_lora_rank")) {
    refuse(name, variant, "it keeps latents");
  } else if (variant == "mla") {
    changes = latent(in, name);
  } else if (variant == "window") {
    changes = fmt::format("sliding_window: {}", sizes.window);
    if (in.has("use_sliding_window")) changes += ", use_sliding_window: true, max_window_layers: 0";
    check_key(model, name, variant, changes);
  } else if (variant == "mha" || variant == "gqa" || variant == "mqa") {
    changes = grouped(in, *model, name, variant, sizes.kv_heads);
  } else {
    std::vector<std::string> names;
    for (const AttentionVariant& known : kVariants) names.emplace_back(known.name);
    throw ConfigError("attention: " + unknown_name("attention", variant, names));
  }
  return changes;
}

std::string with_shape(const ConfigTree& model, const ModelShape& shape) {
  if (shape.layers + shape.heads + shape.head_dim + shape.width == 0) return "";
  ConfigReader in(model, "a model");
  const std::string name = in.text("name");
  if (in.has("base"))
    throw ConfigError(fmt::format("model: {} is made from {}; choose that one", name, in.text("base")));
  if ((shape.heads > 0 || shape.head_dim > 0) && in.has("kv_lora_rank"))
    throw ConfigError(fmt::format("heads: {} keeps latents, which have a size of their own", name));
  std::string out;
  const auto set = [&](std::string_view key, std::int64_t value) {
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", key, value);
  };
  if (shape.layers > 0) set(key_in(*model, kLayers), shape.layers);
  const std::string_view width_key = key_in(*model, kWidth), heads_key = key_in(*model, kHeads);
  const std::int64_t width = in.has(width_key) ? in.integer(width_key) : 0,
                     heads = in.has(heads_key) ? in.integer(heads_key) : 0;
  if (shape.heads > 0) {
    const std::string_view kv_key = key_in(*model, kKeyValueHeads);
    if (in.has(kv_key) && shape.heads % in.integer(kv_key) != 0)
      throw ConfigError(
          fmt::format("heads: must be a multiple of its {} key-value heads, got {}", in.integer(kv_key), shape.heads));
    set(heads_key, shape.heads);
  }
  // A head keeps its size whatever the number of heads and the width.
  if (shape.head_dim > 0) {
    set("head_dim", shape.head_dim);
  } else if ((shape.heads > 0 || shape.width > 0) && !in.has("head_dim") && heads > 0 && width > 0) {
    set("head_dim", width / heads);
  }
  if (shape.width > 0) {
    set(width_key, shape.width);
    if (in.has("intermediate_size") && width > 0)
      set("intermediate_size", in.integer("intermediate_size") * shape.width / width);
  }
  return out;
}

}  // namespace roofcast::explore
