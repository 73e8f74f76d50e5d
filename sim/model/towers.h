#pragma once
// Finds the image and audio encoders in a config.json.

#include <string_view>

#include "base/config_node.h"

namespace roofcast {

/// The map that contains vision_config and audio_config: the document, or the part next to its text config
/// (thinker_config of Qwen2.5-Omni and Qwen3-Omni).
inline ConfigTree part_with_towers(const ConfigTree& whole) {
  for (const std::string_view key : {"vision_config", "audio_config"}) {
    if (whole->find(key) != nullptr) return whole;
  }
  const ConfigTree* part = whole->find("thinker_config");
  return part != nullptr && *part && (*part)->kind == ConfigNode::Kind::kMap ? part_with_towers(*part) : whole;
}

}  // namespace roofcast
