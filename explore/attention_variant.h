#pragma once
// A model of the library with another kind of attention, as the keys of its config that change.

#include <span>
#include <string>
#include <string_view>

#include "base/config_node.h"

namespace roofcast {

struct AttentionVariant {
  std::string_view name, help;
};
/// mha, gqa, mqa, mla, window.
std::span<const AttentionVariant> attention_variants();

/// `{name: MODEL, ...}`, what --set model= takes:
///   mha     as many key-value heads as heads        gqa   `kv_heads` of them      mqa   one
///   mla     a latent of 512 and 64 rotary values a token (DeepSeek-V2, arXiv:2405.04434, section 2.1)
///   window  every layer sees the last `window` tokens
/// Throws ConfigError where the architecture has no such attention.
std::string with_attention(const ConfigTree& model, std::string_view variant, int kv_heads, int window);

}  // namespace roofcast
