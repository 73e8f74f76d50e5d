#pragma once
#include <string>

#include "base/config_node.h"

namespace roofcast {

/// A model's file with what a Hugging Face config.json leaves to where it lies, so that all stay with it where a
/// scenario changes its keys. `_name_or_path`, where it has no `name`: the file's name, or of a config.json the last
/// part of its own `_name_or_path`, else its folder. `hf_quant_config`, where it has no quantization_config: the
/// formats that modelopt writes into hf_quant_config.json beside a config.json, or into NAME.hf_quant_config.json
/// beside NAME.json. `preprocessor_config`, where it has a vision_config: preprocessor_config.json, found alike.
/// Throws ConfigError.
ConfigTree parse_model_file(const std::string& path);

}  // namespace roofcast
