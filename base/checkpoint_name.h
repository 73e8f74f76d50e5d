#pragma once
// Names of quantized checkpoints: a model's name and its format, Qwen/Qwen3-32B-FP8.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"

namespace roofcast {

struct CheckpointName {
  std::vector<std::string> models;  ///< names that the unquantized model may have, without an owner's last
  std::string format;               ///< the ending: "-FP8"
  ConfigTree quantization;          ///< quantization_config of such checkpoints; null: of several, or not known
  std::string weights;              ///< the format as a scenario's `precision` has it; empty: it has no word for it
  std::string advice;               ///< what to write where `quantization` is null
};

/// By configs/checkpoints/formats.yaml. nullopt where the name does not end in a format. `mark`: where the name stands.
std::optional<CheckpointName> parse_checkpoint_name(std::string_view name, const Mark& mark);

/// The name in lower case, without its owner and without the first word that its publisher has dropped (`dropped` of
/// that file): meta-llama/Meta-Llama-3.1-8B is llama-3.1-8b.
std::string bare_model_name(std::string_view name);

/// Whether models of this type are published in fp8 with scales for blocks of 128 x 128 (`block_fp8` of that file).
bool has_block_fp8(std::string_view model_type);

/// What is assumed of a model whose formats come from a name that ends in `format`.
std::string assumed_formats(std::string_view format);
bool are_assumed_formats(std::string_view assumption);  ///< an assumed_formats()

}  // namespace roofcast
