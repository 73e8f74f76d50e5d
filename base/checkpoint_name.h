#pragma once
// Names of quantized checkpoints, such as Qwen/Qwen3-32B-FP8: the name of a model, then a format.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"

namespace roofcast {

struct CheckpointName {
  std::vector<std::string> models;  ///< possible names of the unquantized model; the one without an owner comes last
  std::string format;               ///< the ending: "-FP8"
  ConfigTree quantization;  ///< quantization_config of such checkpoints; null: it differs between them, or is unknown
  std::string weights;      ///< the format's name in `precision` of a scenario; empty: it has none
  std::string advice;       ///< what the user should write where `quantization` is null
};

/// Reads the name by the rules of configs/checkpoints/formats.yaml. Returns nullopt if it does not end in a known
/// format. `location`: where the name is written, for errors.
std::optional<CheckpointName> parse_checkpoint_name(std::string_view name, const SourceLocation& location);

/// The name in lower case, without its owner and without the first word that its publisher has dropped (`dropped` of
/// that file): meta-llama/Meta-Llama-3.1-8B is llama-3.1-8b.
std::string bare_model_name(std::string_view name);

/// Whether models of this type are published in FP8 with one scale per block of 128 x 128 (`block_fp8` of that file).
bool has_block_fp8(std::string_view model_type);

/// The assumption to report when a model's formats are derived from a name that ends in `format`.
std::string assumed_formats(std::string_view format);
bool are_assumed_formats(std::string_view assumption);  ///< whether assumed_formats() wrote it

}  // namespace roofcast
