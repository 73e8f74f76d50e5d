#pragma once
// Reads a vision_config or audio_config under the key names of each family.

#include <string>
#include <string_view>
#include <utility>

#include "sim/model/encoder_spec.h"
#include "sim/model/hf_config.h"

namespace roofcast {

class EncoderConfig {
 public:
  explicit EncoderConfig(ConfigReader in) : in_(std::move(in)) {}
  /// The first of `names` that is present; of a list (such as height and width) its first item.
  double number(Names names, double default_value) {
    for (std::string_view name : names) {
      if (!in_.has(name)) continue;
      if (length_of(name) > 0) return in_.numbers(name, kAtLeastZero).front();
      return in_.number(name, kAtLeastZero);
    }
    return default_value;
  }
  /// Key `key` of the map `part`.
  double number_of(std::string_view part, std::string_view key, double default_value) {
    const ConfigTree map = in_.tree(part);
    if (!map || map->kind != ConfigNode::Kind::kMap) return default_value;
    ConfigReader nested(map);
    const double value = nested.has(key) ? nested.number(key, kAtLeastOne) : default_value;
    nested.ignore_rest();
    return value;
  }
  bool has(std::string_view key) const { return in_.has(key); }
  std::string text(std::string_view key) { return in_.text(key, ""); }
  std::size_t length_of(std::string_view key) {
    const ConfigTree list = in_.tree(key);
    return list && list->kind == ConfigNode::Kind::kList ? list->items.size() : 0;
  }
  [[noreturn]] void fail(std::string_view key, const std::string& message) const { in_.fail(key, message); }
  void done() { in_.ignore_rest(); }

 private:
  ConfigReader in_;
};

/// Reads `vision_config` into `e`, whose widths are already set. `outer` is the map that contains it. Returns an empty
/// string, or what is not supported as the end of a sentence that starts with the model's name.
std::string read_pictures(EncoderConfig& in, ConfigReader& outer, EncoderSpec& e);

}  // namespace roofcast
