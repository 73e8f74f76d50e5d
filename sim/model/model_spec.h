#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "sim/model/encoder_spec.h"
#include "sim/model/layer.h"
#include "sim/model/precision.h"

namespace roofcast {

/// An architecture and the number formats of its checkpoint.
struct ModelSpec {
  std::string name;
  std::string family;      ///< name of the config reader: "llama", "deepseek" ...
  std::string model_type;  ///< from the config: "deepseek_v3" or "kimi_k2" in the family "deepseek"
  double hidden = 0;
  double vocabulary = 0;
  double embedding_dim = 0;        ///< columns of the embedding; hidden unless it is factorized
  double position_embeddings = 0;  ///< learned positions, 0 = none
  double max_context = 0;          ///< tokens, as stated by the checkpoint; 0: not stated
  bool multimodal = false;         ///< the text part of a multimodal model
  bool encoder_only = false;       ///< outputs embeddings or scores, no tokens
  bool tied_embedding = false;
  bool head_bias = false;
  double final_norms = 1;
  double extra_parameters = 0;    ///< counted, but unused for text (vision tower, MTP layers of the checkpoint)
  double mtp_layers = 0;          ///< multi-token-prediction layers of the checkpoint, not counted in the parameters
  std::vector<LayerKind> layers;  ///< kinds with counts
  std::vector<int> order;         ///< per layer, first to last: its index in `layers`
  Precision precision;            ///< as published
  std::vector<std::string> assumptions;  ///< what was assumed of an unknown architecture
  std::vector<std::string> unread;       ///< meaningful keys of its config that were not understood
  Encoders encoders;                     ///< image and audio encoders
  /// The encoder layers of an encoder-decoder, to whose output these layers attend (T5, BART); null: none.
  std::shared_ptr<const ModelSpec> encoder;
  /// Audio encoder tokens per request, to which these layers attend (Whisper: 1500); 0: none.
  double encoded_tokens = 0;
  /// Positions of the decoder of an encoder-decoder, for the output tokens and Whisper's prompt; 0: no limit.
  double decoder_positions = 0;

  bool attends_to_encoder() const { return encoder != nullptr || encoded_tokens > 0; }
  int layer_count() const { return static_cast<int>(order.size()); }
};

/// Parses one of our YAML models or a Hugging Face config.json, recognised by their keys. Throws ConfigError.
ModelSpec parse_model(const ConfigTree& tree);

/// Why an encoder-decoder has too few positions for such a request, as in "prompts of 2000 tokens, but the encoder of
/// bart-large-cnn has 1024 positions". Empty: it has enough. `prompt` includes encoded_tokens.
std::string beyond_positions(const ModelSpec& model, double prompt, double output);

struct ParameterCount {
  double total = 0, active = 0,
         embedding = 0;  ///< active: used per token, without the embedding lookup, with the head
};
ParameterCount count_parameters(const ModelSpec& model);

}  // namespace roofcast
