// Encoder-decoders: the encoder reads the input once; the decoder attends to the encoder's output and to its own
// tokens.

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "sim/model/families.h"

namespace roofcast {
namespace {

/// One of the two stacks.
struct Stack {
  int layers = 0;
  GroupedAttention attention;
  DenseFeedForward block;
  bool norm_bias = true;
};

void append_stack(ModelSpec& model, const Stack& stack, double norms) {
  for (int i = 0; i < stack.layers; ++i) {
    append_layer(model, make_layer(stack.attention, stack.block, {.norm_bias = stack.norm_bias, .norms = norms}));
  }
}

/// The encoder of a text, whose embedding is the decoder's.
std::shared_ptr<const ModelSpec> text_encoder(const ModelSpec& decoder, const Stack& stack) {
  auto encoder = std::make_shared<ModelSpec>();
  encoder->family = decoder.family;
  encoder->hidden = encoder->embedding_dim = decoder.hidden;
  encoder->tied_embedding = encoder->encoder_only = true;
  Stack both_ways = stack;
  both_ways.attention.both_ways = true;
  append_stack(*encoder, both_ways, 2);
  return encoder;
}

void append_decoder(ModelSpec& model, const Stack& stack) {
  Stack cross = stack;
  cross.attention.encoded_dim = model.hidden;
  append_stack(model, cross, 3);
}

GroupedAttention plain_heads(double heads, double head_dim, bool biases) {
  return {.heads = heads,
          .kv_heads = heads,
          .head_dim = head_dim,
          .value_dim = head_dim,
          .qkv_bias = biases,
          .output_bias = biases,
          .rotary = false};
}

/// Keys that BART's family and Whisper share: `part` is "encoder" or "decoder".
Stack read_stack(HfConfig& in, std::string_view part, double hidden) {
  const std::string name(part);
  const std::string layers = name + "_layers", heads = name + "_attention_heads", inter = name + "_ffn_dim";
  Stack stack{.layers = in.integer({layers}), .attention = {}, .block = {}};
  if (stack.layers < 1 || stack.layers > 10000) in.fail(layers, "must be between 1 and 10000");
  const double count = in.number({heads});
  if (count < 1 || std::fmod(hidden, count) != 0.0)
    in.fail(heads, fmt::format("{} heads do not divide a hidden size of {}", count, hidden));
  stack.attention = plain_heads(count, hidden / count, true);
  stack.block = {.inter = in.number({inter}), .gated = false, .bias = true};
  return stack;
}

/// The differences between BART's descendants.
struct BartLike {
  std::string_view model_type;
  bool positions;       ///< of each stack, kept in the checkpoint, learned or not
  double offset;        ///< positions before the first
  bool embedding_norm;  ///< after the embedding
  bool final_norm;      ///< after the last layer
};
constexpr std::array<BartLike, 5> kBartLike{{{"bart", true, 2, true, false},
                                             {"mbart", true, 2, true, true},
                                             {"pegasus", true, 0, false, true},
                                             {"marian", true, 0, false, false},
                                             {"m2m_100", false, 0, false, true}}};

}  // namespace

/// T5 (Raffel et al. 2020, arXiv:1910.10683), Flan-T5, mT5 and UMT5: RMSNorm, no biases, heads of a width of their own
/// (d_kv), positions by a learned bias on the scores: one for all layers of a stack, in UMT5 one for each. What the
/// bias costs in addition to the scores is not priced.
ModelSpec read_t5(HfConfig& in) {
  ModelSpec model = start_model(in, {.tied = true});
  model.max_context = 0;  // n_positions is the training length, not a limit
  const double heads = in.number({"num_heads"});
  if (heads < 1) in.fail("num_heads", "must be at least 1");
  Stack stack{.layers = layer_count(in),
              .attention = plain_heads(heads, in.number({"d_kv"}), false),
              .block = {.inter = in.number({"d_ff"}), .gated = false},
              .norm_bias = false};
  stack.block.gated = in.text({"feed_forward_proj"}, "relu").starts_with("gated");
  const double buckets = in.number({"relative_attention_num_buckets"}, 32) * heads;
  (void)in.number({"relative_attention_max_distance"}, 128);
  const bool each = in.model_type() == "umt5";
  auto encoder = std::make_shared<ModelSpec>(*text_encoder(model, stack));
  encoder->extra_parameters = buckets * (each ? stack.layers : 1);
  model.encoder = encoder;
  stack.layers = in.integer({"num_decoder_layers"}, stack.layers);
  if (stack.layers < 1 || stack.layers > 10000) in.fail("num_decoder_layers", "must be between 1 and 10000");
  model.extra_parameters = buckets * (each ? stack.layers : 1);
  append_decoder(model, stack);
  return model;
}

/// BART (Lewis et al. 2019, arXiv:1910.13461), mBART, PEGASUS, Marian, and M2M-100 and NLLB: biases and LayerNorm
/// everywhere, positions of both stacks.
ModelSpec read_bart(HfConfig& in) {
  const auto is_type = [&](const BartLike& like) { return like.model_type == in.model_type(); };
  const BartLike& like = *std::find_if(kBartLike.begin(), kBartLike.end(), is_type);
  ModelSpec model = start_model(in, {.tied = true});
  const double length = model.max_context, norms = (like.embedding_norm ? 1 : 0) + (like.final_norm ? 1 : 0);
  if (length < 1) in.fail("max_position_embeddings", "missing: the positions of encoder and decoder");
  model.position_embeddings = like.positions ? length + like.offset : 0;
  model.final_norms = norms;
  auto encoder = std::make_shared<ModelSpec>(*text_encoder(model, read_stack(in, "encoder", model.hidden)));
  encoder->position_embeddings = model.position_embeddings;
  encoder->final_norms = norms;
  encoder->max_context = length;
  model.encoder = encoder;
  model.decoder_positions = length;
  model.max_context = 2 * length;  // prompt and answer have `length` positions each
  append_decoder(model, read_stack(in, "decoder", model.hidden));
  for (const char* key : {"num_hidden_layers", "add_bias_logits", "add_final_layer_norm", "normalize_before",
                          "normalize_embedding", "static_position_embeddings", "num_beams"})
    in.reader().ignore(key);  // each type has its own of these
  return model;
}

/// Whisper (Radford et al. 2022, arXiv:2212.04356): the decoder attends to the 1500 positions that the encoder makes of
/// a window of 30 s. Keys have no biases.
ModelSpec read_whisper(HfConfig& in) {
  ModelSpec model = start_model(in, {.tied = true});
  model.multimodal = true;
  model.encoded_tokens = in.number({"max_source_positions"}, 1500);
  model.position_embeddings = in.number({"max_target_positions"}, 448);
  model.decoder_positions = model.position_embeddings;
  model.max_context = model.encoded_tokens + model.position_embeddings;
  for (const char* key :
       {"encoder_layers", "encoder_attention_heads", "encoder_ffn_dim", "num_mel_bins", "num_hidden_layers"})
    in.reader().ignore(key);  // of the encoder of sounds
  Stack stack = read_stack(in, "decoder", model.hidden);
  stack.attention.key_bias = false;
  append_decoder(model, stack);
  return model;
}

/// The decoder starts with a special token and never reads its last output token, so it needs as many positions as
/// output tokens.
std::string beyond_positions(const ModelSpec& model, double prompt, double output) {
  const double encoder = model.encoder ? model.encoder->max_context : 0;
  if (encoder > 0 && prompt > encoder)
    return fmt::format("prompts of {:.0f} tokens, but the encoder of {} has {:.0f} positions", prompt, model.name,
                       encoder);
  const double before = model.encoded_tokens > 0 ? std::max(0.0, prompt - model.encoded_tokens) : 0.0;
  if (model.decoder_positions > 0 && before + output > model.decoder_positions)
    return fmt::format("{} of {:.0f} tokens, but the decoder of {} has {:.0f} positions",
                       before > 0 ? "prompts and outputs" : "outputs", before + output, model.name,
                       model.decoder_positions);
  return "";
}

}  // namespace roofcast
