#pragma once
// A model of the library with another kind of attention or another shape, as the keys of its config that change.

#include <span>
#include <string>
#include <string_view>

#include "base/config_node.h"

namespace roofcast::explore {

struct AttentionVariant {
  std::string_view name, help;
};
/// mha, gqa, mqa, mla, cla, window.
std::span<const AttentionVariant> attention_variants();

/// What a variant can choose; each reads its own.
struct AttentionSizes {
  int kv_heads = 8, window = 4096, share_factor = 2;
};

/// What changes, "key: value, ...":
///   mha     as many key-value heads as heads        gqa   `kv_heads` of them      mqa   one
///   mla     a latent of 512 and 64 rotary values a token (DeepSeek-V2, arXiv:2405.04434, section 2.1)
///   cla     of every `share_factor` layers the first keeps keys and values, the others read them (Brandon et al. 2024,
///           arXiv:2405.12981, section 3)
///   window  every layer sees the last `window` tokens
/// Throws ConfigError where the architecture has no such attention.
std::string with_attention(const ConfigTree& model, std::string_view variant, const AttentionSizes& sizes);

/// Sizes in place of the model's own; 0: its own.
struct ModelShape {
  int layers = 0, heads = 0, head_dim = 0, width = 0;
};
/// What changes, "key: value, ..."; empty where nothing does. Heads keep their size when their number or the width
/// changes; the feed-forward part keeps its ratio to the width. Throws ConfigError where the model has no such size.
std::string with_shape(const ConfigTree& model, const ModelShape& shape);

}  // namespace roofcast::explore
