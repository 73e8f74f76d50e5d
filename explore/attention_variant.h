#pragma once
// A shipped model with another kind of attention or another shape, as the config keys that change.

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

/// Parameters of the variants; each uses its own.
struct AttentionSizes {
  int kv_heads = 8, window = 4096, share_factor = 2;
};

/// The config keys that change, "key: value, ...":
///   mha     as many key-value heads as heads        gqa   `kv_heads` of them      mqa   one
///   mla     a latent of 512 and 64 rotary values a token (DeepSeek-V2, arXiv:2405.04434, section 2.1)
///   cla     of every `share_factor` layers the first keeps keys and values, the others read them (Brandon et al. 2024,
///           arXiv:2405.12981, section 3)
///   window  every layer sees the last `window` tokens
/// Throws ConfigError if the architecture does not support it.
std::string with_attention(const ConfigTree& model, std::string_view variant, const AttentionSizes& sizes);

/// Sizes that override the model's; 0: unchanged.
struct ModelShape {
  int layers = 0, heads = 0, head_dim = 0, width = 0;
};
/// The config keys that change, "key: value, ..."; empty if none does. Heads keep their size when their number or the
/// width changes; the feed-forward block keeps its ratio to the width. Throws ConfigError if the model lacks such a
/// size.
std::string with_shape(const ConfigTree& model, const ModelShape& shape);

}  // namespace roofcast::explore
