#include "explore/attention_variant.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <vector>

#include <fmt/format.h>

#include "base/config_reader.h"
#include "base/text.h"

namespace roofcast {
namespace {

constexpr std::array kVariants{
    AttentionVariant{"mha", "as many key-value heads as heads"},
    AttentionVariant{"gqa", "kv_heads key-value heads, each shared by a group of heads"},
    AttentionVariant{"mqa", "one key-value head for all heads"},
    AttentionVariant{"mla", "one latent of 512 and 64 rotary values a token (DeepSeek-V2)"},
    AttentionVariant{"window", "every layer sees the last `window` tokens"},
};

/// The name under which the config has this size; the first where it has none.
std::string_view key_in(const ConfigNode& model, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) {
    if (model.find(name) != nullptr) return name;
  }
  return *names.begin();
}

[[noreturn]] void refuse(const std::string& model, std::string_view variant, std::string_view why) {
  throw ConfigError(fmt::format("attention: {} cannot become {}: {}", model, variant, why));
}

std::string grouped(ConfigReader& in, const ConfigNode& model, const std::string& name, std::string_view variant,
                    int kv_heads) {
  const auto heads = static_cast<int>(in.integer(key_in(model, {"num_attention_heads", "n_head", "n_heads"})));
  const int wanted = variant == "mha" ? heads : variant == "mqa" ? 1 : kv_heads;
  if (wanted > heads || heads % wanted != 0)
    refuse(name, variant, fmt::format("kv_heads must divide its {} heads, got {}", heads, wanted));
  return fmt::format(
      "{}: {}", key_in(model, {"num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num"}), wanted);
}

/// Dense Llama-like decoders alone: DeepSeek's reader takes the same keys, with every layer dense.
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

}  // namespace

std::span<const AttentionVariant> attention_variants() { return kVariants; }

std::string with_attention(const ConfigTree& model, std::string_view variant, int kv_heads, int window) {
  ConfigReader in(model, "a model");
  const std::string name = in.text("name");
  if (in.has("base")) refuse(name, variant, fmt::format("it is made from {}; choose that one", in.text("base")));
  if (in.has("kv_lora_rank")) refuse(name, variant, "it keeps latents");
  std::string changes;
  if (variant == "mla") {
    changes = latent(in, name);
  } else if (variant == "window") {
    changes = fmt::format("sliding_window: {}", window);
    if (in.has("use_sliding_window")) changes += ", use_sliding_window: true, max_window_layers: 0";
  } else if (variant == "mha" || variant == "gqa" || variant == "mqa") {
    changes = grouped(in, *model, name, variant, kv_heads);
  } else {
    std::vector<std::string> names;
    for (const AttentionVariant& known : kVariants) names.emplace_back(known.name);
    throw ConfigError("attention: " + unknown_name("attention", variant, names));
  }
  return fmt::format("{{name: {}, {}}}", name, changes);
}

}  // namespace roofcast
