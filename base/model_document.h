#pragma once
#include <string>

#include "base/config_node.h"

namespace roofcast {

/// Reads a model's file and adds what a Hugging Face config.json leaves to the files and folder around it:
///   _name_or_path        if there is no `name`: the file's name; for a config.json the last part of its own
///                        `_name_or_path`, else its folder
///   hf_quant_config      if there is no quantization_config: hf_quant_config.json, where modelopt writes the formats,
///                        beside config.json, or NAME.hf_quant_config.json beside NAME.json
///   preprocessor_config  if there is a vision_config: preprocessor_config.json, looked up in the same way
/// Throws ConfigError.
ConfigTree parse_model_file(const std::string& path);

}  // namespace roofcast
