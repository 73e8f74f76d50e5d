// Llama and what shares its block: RMSNorm, rotary grouped-query attention, gated feed-forward (Touvron et al. 2023).

#include <cmath>

#include "sim/model/families.h"

namespace roofcast {

/// The classes of SmolLM3 and ERNIE 4.5 tie embeddings unless the config says otherwise (transformers 4.57:
/// configuration_smollm3.py, configuration_ernie4_5.py), and their config.json leaves the default out.
ModelSpec read_llama(HfConfig& in) {
  return read_decoder(in, {.tied = in.model_type() == "smollm3" || in.model_type() == "ernie4_5"});
}

/// Qwen 1 (2023): the config's intermediate_size is that of gate and up together.
ModelSpec read_qwen(HfConfig& in) {
  const Traits traits{.qkv_bias = true};
  ModelSpec model = start_model(in, traits);
  DenseFeedForward block = read_dense(in, traits);
  block.inter /= 2.0;
  for (int i = layer_count(in); i > 0; --i) append_layer(model, make_layer(read_attention(in, traits), block, traits));
  return model;
}

/// Qwen2 (2024) has biases on queries, keys and values alone; Qwen2-MoE a gated shared expert next to the routed ones.
ModelSpec read_qwen2(HfConfig& in) {
  return read_decoder(
      in, {.qkv_bias = true, .bias_on_output = false, .shared_gate = in.has({"shared_expert_intermediate_size"})});
}

/// Qwen3 (2025): queries and keys are normed per head; dense, or experts in every layer. Apertus (2025) has no gate
/// (xIELU).
ModelSpec read_qwen3(HfConfig& in) {
  return read_decoder(in, {.qk_norm = true, .gated = in.model_type() != "apertus"});
}

/// Granite (IBM, 2024): Llama with scaled residuals and tied embeddings.
ModelSpec read_granite(HfConfig& in) { return read_decoder(in, {.tied = true}); }

/// OLMo 2 and OLMoE (AI2): normed queries and keys.
ModelSpec read_olmo(HfConfig& in) { return read_decoder(in, {.qk_norm = true}); }

/// GLM-4 (2024-25): biases on q, k, v; glm4 norms a block's output as well as its input.
ModelSpec read_glm(HfConfig& in) {
  return read_decoder(in, {.norms = in.model_type() == "glm4" ? 4.0 : 2.0, .bias_on_output = false});
}

/// Nemotron-4 (Parmar et al. 2024): LayerNorm, squared ReLU without a gate.
ModelSpec read_nemotron(HfConfig& in) { return read_decoder(in, {.norm_bias = true, .gated = false}); }

/// Llama-Nemotron (2025): layers of Llama pruned one by one by a search; attention or feed-forward may be missing.
/// The width of a block is 2/3 ffn_mult hidden, rounded up to a multiple of 256.
ModelSpec read_nemotron_nas(HfConfig& in) {
  const Traits traits;
  ModelSpec model = start_model(in, traits);
  const double hidden = model.hidden;
  const double heads = in.number({"num_attention_heads"});
  for (const ConfigTree& item : in.reader().list("block_configs")) {
    ConfigReader block(item, "a block");
    ConfigReader attention = block.child("attention");
    ConfigReader ffn = block.child("ffn");
    Mixer mixer = NoMixer{};
    if (!attention.boolean("no_op", false) && !attention.boolean("replace_with_linear", false)) {
      GroupedAttention a;
      a.heads = heads;
      a.kv_heads = heads / attention.number("n_heads_in_group", kAtLeastOne);
      a.head_dim = a.value_dim = hidden / heads;
      mixer = a;
    }
    FeedForward feed_forward = NoFeedForward{};
    if (!ffn.boolean("no_op", false)) {
      const double inter = std::floor(2.0 * ffn.number("ffn_mult", kPositive) * hidden / 3.0);
      feed_forward = DenseFeedForward{.inter = std::ceil(inter / 256.0) * 256.0};
    }
    const bool linear = attention.boolean("replace_with_linear", false) || ffn.boolean("replace_with_linear", false);
    if (linear) in.reader().fail("block_configs", "blocks replaced by a linear layer are not supported");
    Traits here = traits;
    here.norms = (mixer == Mixer(NoMixer{}) ? 0.0 : 1.0) + (feed_forward == FeedForward(NoFeedForward{}) ? 0.0 : 1.0);
    append_layer(model, make_layer(mixer, feed_forward, here));
  }
  return model;
}

}  // namespace roofcast
