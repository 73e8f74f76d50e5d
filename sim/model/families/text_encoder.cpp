// Encoders of text: embeddings, rerankers, classifiers.

#include "sim/model/families.h"

namespace roofcast {
namespace {

constexpr Traits kBert{.tied = true,
                       .qkv_bias = true,
                       .output_bias = true,
                       .mlp_bias = true,
                       .norm_bias = true,
                       .gated = false,
                       .rotary = false,
                       .inter_factor = 4};

/// What leaves an encoder is the hidden state of its first token, or the mean of all: there is no head.
ModelSpec start_encoder(HfConfig& in, const Traits& traits) {
  ModelSpec model = start_model(in, traits);
  model.tied_embedding = true;
  model.encoder_only = true;
  model.final_norms = 1;
  return model;
}

}  // namespace

/// BERT (Devlin et al. 2018), RoBERTa, XLM-RoBERTa, DistilBERT: learned positions, a norm of the embedding, and one
/// after attention and after the feed-forward block; types of tokens and a pooler of h^2, but not in DistilBERT.
ModelSpec read_bert(HfConfig& in) {
  ModelSpec model = start_encoder(in, kBert);
  model.position_embeddings = model.max_context;
  const bool distilled = in.model_type() == "distilbert";
  const double types = in.number({"type_vocab_size"}, distilled ? 0 : 2);
  model.extra_parameters += types * model.hidden + (distilled ? 0.0 : model.hidden * (model.hidden + 1.0));
  // Positions of RoBERTa begin behind that of the padding.
  if (in.model_type() == "roberta" || in.model_type() == "xlm-roberta")
    model.max_context -= in.number({"pad_token_id"}, 1) + 1;
  GroupedAttention attention = read_attention(in, kBert);
  attention.both_ways = true;
  DenseFeedForward block =
      in.has({"hidden_dim"}) ? DenseFeedForward{.inter = in.number({"hidden_dim"})} : read_dense(in, kBert);
  block.gated = false;
  block.bias = true;
  const int layers = layer_count(in);
  for (int i = 0; i < layers; ++i) append_layer(model, make_layer(attention, block, kBert));
  return model;
}

/// ModernBERT (Warner et al. 2024, arXiv:2412.13663): no biases, GeGLU, rotary positions; two of three layers see 128
/// tokens, 64 on each side.
ModelSpec read_modernbert(HfConfig& in) {
  const Traits traits{.tied = true, .gated = true};
  ModelSpec model = start_encoder(in, traits);
  model.final_norms = 2;
  model.extra_parameters += model.hidden * model.hidden;  // of its head for prediction
  const int every = in.integer({"global_attn_every_n_layers"}, 3);
  const double window = in.number({"local_attention"}, 128);
  const int layers = layer_count(in);
  for (int i = 0; i < layers; ++i) {
    GroupedAttention attention = read_attention(in, traits);
    attention.both_ways = true;
    attention.window = every > 0 && i % every != 0 ? window : 0.0;
    append_layer(model, make_layer(attention, read_dense(in, traits), traits));
  }
  return model;
}

}  // namespace roofcast
