#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "sim/model/encoder_spec.h"
#include "sim/model/layer.h"
#include "sim/model/precision.h"

namespace roofcast {

/// An architecture and the formats of its checkpoint.
struct ModelSpec {
  std::string name;
  std::string family;      ///< whose layers it has: "llama", "deepseek" ...
  std::string model_type;  ///< its config's, "deepseek_v3" or "kimi_k2" of the family "deepseek"
  double hidden = 0;
  double vocabulary = 0;
  double embedding_dim = 0;        ///< columns of the embedding, hidden unless it is factored
  double position_embeddings = 0;  ///< learned positions, 0 = none
  double max_context = 0;          ///< of the checkpoint, 0 = not stated
  bool multimodal = false;         ///< the text part of a model that also sees or hears
  bool encoder_only = false;       ///< gives vectors or scores of a text, no tokens
  bool tied_embedding = false;
  bool head_bias = false;
  double final_norms = 1;
  double extra_parameters =
      0;                  ///< counted, never computed with in text (vision tower, MTP layers that a checkpoint carries)
  double mtp_layers = 0;  ///< multi-token-prediction layers of the checkpoint, not counted in the parameters
  std::vector<LayerKind> layers;         ///< kinds with counts
  std::vector<int> order;                ///< index into `layers` of each layer, first to last
  Precision precision;                   ///< as published
  std::vector<std::string> assumptions;  ///< what an unknown architecture was taken for
  std::vector<std::string> unread;       ///< keys of its config that mean something and were not understood
  Encoders encoders;                     ///< of pictures and sounds
  /// Layers that tokens of a prompt pass in place of these, whose output these attend to (T5, BART); null: none.
  std::shared_ptr<const ModelSpec> encoder;
  /// Tokens that an encoder of sounds makes of every request for these layers to attend to (Whisper: 1500); 0: none.
  double encoded_tokens = 0;
  /// Tokens that the decoder of an encoder-decoder has positions for: of the answer, and of Whisper's prompt before it;
  /// 0: no limit.
  double decoder_positions = 0;

  bool attends_to_encoder() const { return encoder != nullptr || encoded_tokens > 0; }
  int layer_count() const { return static_cast<int>(order.size()); }
};

/// A model of ours (YAML) or a Hugging Face config.json, told apart by their keys. Throws ConfigError.
ModelSpec parse_model(const ConfigTree& tree);

/// Why an encoder-decoder has no positions for such a request, as "prompts of 2000 tokens, but the encoder of
/// bart-large-cnn has 1024 positions"; empty: it has. `prompt` counts encoded_tokens, too.
std::string beyond_positions(const ModelSpec& model, double prompt, double output);

struct ParameterCount {
  double total = 0, active = 0,
         embedding = 0;  ///< active: touched by one token, embedding look-up not counted, head counted
};
ParameterCount count_parameters(const ModelSpec& model);

}  // namespace roofcast
