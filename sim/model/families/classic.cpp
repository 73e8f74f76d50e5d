// Decoders from before Llama: LayerNorm, biases, feed-forward blocks without a gate, learned or ALiBi positions.

#include "sim/model/families.h"

namespace roofcast {
namespace {

constexpr Traits kGpt2{.tied = true,
                       .qkv_bias = true,
                       .output_bias = true,
                       .mlp_bias = true,
                       .norm_bias = true,
                       .gated = false,
                       .rotary = false,
                       .inter_factor = 4};

}  // namespace

/// GPT-2 (Radford et al. 2019), and StarCoder's gpt_bigcode (Li et al. 2023) with one key-value head.
ModelSpec read_gpt2(HfConfig& in) {
  ModelSpec model = read_decoder(in, kGpt2);
  model.position_embeddings = model.max_context;
  return model;
}

/// OPT (Zhang et al. 2022): learned positions with an offset of 2; OPT-350m factors its embedding and norms last.
ModelSpec read_opt(HfConfig& in) {
  ModelSpec model = read_decoder(in, kGpt2);
  model.position_embeddings = model.max_context + 2;
  model.final_norms = in.flag({"do_layer_norm_before"}, true) ? 1 : 0;
  return model;
}

/// Jais (Sengupta et al. 2023, arXiv:2308.16149): GPT-2 with ALiBi and a gate (SwiGLU) in the feed-forward block.
ModelSpec read_jais(HfConfig& in) {
  Traits traits = kGpt2;
  traits.gated = true;
  return read_decoder(in, traits);
}

/// BLOOM (Le Scao et al. 2022): ALiBi, and a norm after the embedding.
ModelSpec read_bloom(HfConfig& in) {
  ModelSpec model = read_decoder(in, kGpt2);
  model.final_norms = 2;
  return model;
}

/// GPT-J (Wang, Komatsuzaki 2021): attention and feed-forward in parallel after one norm; biases in the latter and
/// in the head.
ModelSpec read_gptj(HfConfig& in) {
  return read_decoder(in, {.mlp_bias = true,
                           .head_bias = true,
                           .norm_bias = true,
                           .gated = false,
                           .parallel_block = true,
                           .norms = 1,
                           .inter_factor = 4});
}

/// GPT-Neo (Black et al. 2021): no biases on queries, keys and values; every other layer sees 256 tokens.
ModelSpec read_gpt_neo(HfConfig& in) {
  Traits traits = kGpt2;
  traits.qkv_bias = false;
  ModelSpec model = start_model(in, traits);
  model.position_embeddings = model.max_context;
  const std::vector<std::string> types = in.texts({"attention_layers"});
  const double window = in.number({"window_size"}, 256);
  for (std::size_t i = 0; i < static_cast<std::size_t>(layer_count(in)); ++i) {
    GroupedAttention attention = read_attention(in, traits);
    const bool local = i < types.size() ? types[i] == "local" : i % 2 == 1;
    attention.window = local ? window : 0.0;
    append_layer(model, make_layer(attention, read_dense(in, traits), traits));
  }
  return model;
}

/// GPT-NeoX and Pythia (Black et al. 2022): parallel blocks, each with its own norm.
ModelSpec read_gpt_neox(HfConfig& in) {
  const bool parallel = in.flag({"use_parallel_residual"}, true);
  return read_decoder(in, {.qkv_bias = true,
                           .output_bias = true,
                           .mlp_bias = true,
                           .norm_bias = true,
                           .gated = false,
                           .parallel_block = parallel});
}

/// Falcon (Almazrouei et al. 2023): parallel blocks. 40B and 180B (new_decoder_architecture) have a norm for each and 8
/// KV heads; 7B has one of each.
ModelSpec read_falcon(HfConfig& in) {
  const bool grouped = in.flag({"new_decoder_architecture"}, false);
  const bool parallel = grouped || in.flag({"parallel_attn"}, true);
  const bool bias = in.flag({"bias"}, false);
  Traits traits{.tied = true,
                .output_bias = bias,
                .mlp_bias = bias,
                .norm_bias = true,
                .gated = false,
                .parallel_block = parallel,
                .rotary = !in.flag({"alibi"}, false),
                .norms = grouped || !parallel ? 2.0 : 1.0,
                .inter_factor = 4};
  if (!grouped) {
    traits.kv_heads = in.flag({"multi_query"}, true) ? 1 : 0;
    in.reader().ignore("num_kv_heads");
  }
  return read_decoder(in, traits);
}

/// MPT (MosaicML 2023): ALiBi, no biases at all.
ModelSpec read_mpt(HfConfig& in) {
  Traits traits{.tied = true, .gated = false, .rotary = false, .inter_factor = in.factor({"expansion_ratio"}, 4)};
  if (auto attention = in.reader().optional_child("attn_config")) {
    traits.kv_heads =
        attention->number("kv_n_heads", attention->text("attn_type", "") == "multiquery_attention" ? 1.0 : 0.0);
    attention->ignore_rest();
  }
  return read_decoder(in, traits);
}

/// Phi-1.5 and Phi-2 (Li et al. 2023): parallel blocks after one norm, biases everywhere.
ModelSpec read_phi(HfConfig& in) {
  return read_decoder(in, {.qkv_bias = true,
                           .output_bias = true,
                           .mlp_bias = true,
                           .head_bias = true,
                           .norm_bias = true,
                           .gated = false,
                           .parallel_block = true,
                           .norms = 1});
}

/// StarCoder2 (Lozhkov et al. 2024): grouped queries, biases everywhere.
ModelSpec read_starcoder2(HfConfig& in) {
  return read_decoder(
      in, {.tied = true, .qkv_bias = true, .output_bias = true, .mlp_bias = true, .norm_bias = true, .gated = false});
}

/// Molmo (Deitke et al. 2024, arXiv:2409.17146): Qwen2's layers; intermediate_size counts gate and up together.
ModelSpec read_molmo(HfConfig& in) {
  ModelSpec model = read_decoder(in, {.qkv_bias = true, .bias_on_output = false});
  for (LayerKind& layer : model.layers) {
    if (auto* block = std::get_if<DenseFeedForward>(&layer.feed_forward)) block->inter /= 2;
  }
  return model;
}

/// StableLM (Bellagente et al. 2024): LayerNorm, gated.
ModelSpec read_stablelm(HfConfig& in) { return read_decoder(in, {.norm_bias = true}); }

/// Command R (Cohere 2024): parallel blocks after one norm; in Command R7B and A three layers of four have a window.
ModelSpec read_cohere(HfConfig& in) { return read_decoder(in, {.tied = true, .parallel_block = true, .norms = 1}, 4); }

}  // namespace roofcast
