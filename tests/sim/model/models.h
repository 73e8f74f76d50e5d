#pragma once
// Models for tests: shipped ones by name, small ones from text, imported ones by file.

#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "base/config_node.h"
#include "sim/model/memory.h"
#include "sim/model/model_spec.h"
#include "sim/model/operators.h"

namespace roofcast {

inline ModelSpec shipped(const std::string& name) {
  return parse_model(parse_config_file(std::string(ROOFCAST_SOURCE_DIR) + "/configs/models/" + name + ".yaml"));
}
inline ModelSpec from_text(const std::string& text) { return parse_model(parse_config_text(text, "config.json")); }

/// Hidden 256, 4 layers, 8 heads of 32, 2 key-value heads, feed-forward 512, 1000 words.
inline const std::string kSmall =
    "{model_type: llama, hidden_size: 256, num_hidden_layers: 4, num_attention_heads: 8, num_key_value_heads: 2, "
    "intermediate_size: 512, vocab_size: 1000, max_position_embeddings: 4096";

/// What is wrong with a config; empty: nothing.
inline std::string message(const std::string& text) {
  try {
    from_text(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

inline OperatorContext context_of(const ModelSpec& model, const Sharding& sharding = {}) {
  OperatorContext context;
  context.model = &model;
  context.precision = model.precision;
  context.sharding = sharding;
  return context;
}

}  // namespace roofcast
