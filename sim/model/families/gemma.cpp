// Gemma 1 to 4 (Google 2024-26): tied embeddings, wide heads, norms around both blocks from the second on, and
// layers that see a window between layers that see everything.

#include <algorithm>

#include "sim/model/families.h"
#include "sim/model/families/cache_sharing.h"

namespace roofcast {
namespace {

/// Defaults of transformers' Gemma3TextConfig, which the published configs leave out.
constexpr Traits kGemma3{
    .tied = true, .qk_norm = true, .norms = 4, .heads = 8, .kv_heads = 4, .head_dim = 256, .vocabulary = 262208};

}  // namespace

ModelSpec read_gemma(HfConfig& in) { return read_decoder(in, {.tied = true, .head_dim = 256}); }

/// Every other layer has the window; the config does not say so.
ModelSpec read_gemma2(HfConfig& in) { return read_decoder(in, {.tied = true, .norms = 4, .head_dim = 256}, 2); }

/// Five layers with the window, then one without.
ModelSpec read_gemma3(HfConfig& in) { return read_decoder(in, kGemma3, 6); }

/// Gemma 3n: MatFormer blocks with a table of embeddings per layer (looked up, gated and projected), a low-rank path
/// parallel to attention (LAuReL), four predicted residual streams (AltUp); the last num_kv_shared_layers read the
/// cache of earlier ones. Source: transformers, modeling_gemma3n.py.
ModelSpec read_gemma3n(HfConfig& in) {
  Traits traits = kGemma3;
  traits.norms = 6;
  traits.kv_heads = 2;
  traits.vocabulary = 262400;
  ModelSpec model = start_model(in, traits);
  const double hidden = model.hidden;
  const int layers = layer_count(in);
  const std::vector<double> windows = read_windows(in, layers, 5);
  const double side = in.number({"hidden_size_per_layer_input"}, 256);
  const double laurel = in.number({"laurel_rank"}, 64);
  const std::vector<double> widths = in.numbers({"intermediate_size"});
  std::vector<GroupedAttention> attention(windows.size(), read_attention(in, traits));
  for (std::size_t i = 0; i < windows.size(); ++i) attention[i].window = windows[i];
  share_caches(in, attention, std::min(15, layers - 1));
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const DenseFeedForward dense = i < widths.size() ? DenseFeedForward{.inter = widths[i]} : read_dense(in, traits);
    LayerKind kind = make_layer(attention[i], dense, traits);
    kind.extra_parameters = 2.0 * hidden * (side + laurel);
    append_layer(model, kind);
  }
  const double tables = in.number({"vocab_size_per_layer_input"}, 262144) * side * layers;
  const double streams = in.number({"altup_num_inputs"}, 4) - 1.0;
  model.extra_parameters = tables + hidden * side * layers + 2.0 * streams * hidden * hidden;
  model.assumptions.emplace_back("AltUp's predictions and corrections are counted as weights, not as work");
  model.assumptions.emplace_back("the per-layer embedding tables are kept on the GPU");
  return model;
}

/// Gemma 4: layers that see everything have heads of their own size whose values are their keys; experts may stand
/// next to a dense block. E2B and E4B have Gemma 3n's table of embeddings per layer, and E2B's layers that read the
/// cache of others a feed-forward block twice as wide (transformers, modeling_gemma4.py).
ModelSpec read_gemma4(HfConfig& in) {
  Traits traits = kGemma3;
  const bool routed = in.flag({"enable_moe_block"}, false);
  traits.norms = routed ? 7 : 4;
  ModelSpec model = start_model(in, traits);
  const int layers = layer_count(in);
  const std::vector<double> windows = read_windows(in, layers, 6);
  std::vector<GroupedAttention> attention(windows.size(), read_attention(in, traits));
  for (std::size_t i = 0; i < windows.size(); ++i) {
    GroupedAttention& a = attention[i];
    a.window = windows[i];
    if (windows[i] > 0) continue;
    a.head_dim = a.value_dim = in.number({"global_head_dim"}, a.head_dim);
    a.kv_heads = in.number({"num_global_key_value_heads"}, a.kv_heads);
    a.value_projection = !in.flag({"attention_k_eq_v"}, false);
  }
  share_caches(in, attention);
  const double side = in.number({"hidden_size_per_layer_input"}, 0);
  const double shared = in.number({"num_kv_shared_layers"}, 0);
  const bool wide = in.flag({"use_double_wide_mlp"}, false);
  if (side > 0) traits.norms += 1;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    DenseFeedForward dense = read_dense(in, traits);
    if (wide && static_cast<double>(i) >= layers - shared) dense.inter *= 2;
    FeedForward block = dense;
    if (routed) {
      ExpertFeedForward experts = read_experts(in, traits);
      experts.dense_inter = read_dense(in, traits).inter;
      block = experts;
    }
    LayerKind kind = make_layer(attention[i], block, traits);
    kind.extra_parameters = 2.0 * model.hidden * side;
    append_layer(model, kind);
  }
  if (side > 0) {
    model.extra_parameters =
        (in.number({"vocab_size_per_layer_input"}, model.vocabulary) + model.hidden) * side * layers;
    model.assumptions.emplace_back("the per-layer embedding tables are kept on the GPU");
  }
  return model;
}

}  // namespace roofcast
