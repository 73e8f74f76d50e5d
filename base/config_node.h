#pragma once
// A parsed YAML or JSON document. Every node keeps its location in the source.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace roofcast {

struct ConfigNode;
using ConfigTree = std::shared_ptr<const ConfigNode>;

/// One node. Trees are immutable and share nodes; an overlay copies only the nodes on the path to a change.
struct ConfigNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  struct Entry {
    std::string key;
    SourceLocation key_location;
    ConfigTree value;
  };
  Kind kind = Kind::kNull;
  SourceLocation location;
  std::string scalar;             ///< kScalar: the text as written, without quotes
  bool quoted = false;            ///< kScalar: "8" is text, 8 is a number
  std::vector<ConfigTree> items;  ///< kList
  std::vector<Entry> entries;     ///< kMap, in the order written

  const ConfigTree* find(std::string_view key) const;  ///< null when absent or not a map
};

/// Reads one YAML or JSON document. Throws ConfigError for a missing file, a directory, an empty file, malformed text,
/// duplicate keys, aliases, merge keys, or more than one document.
ConfigTree parse_config_file(const std::string& path);
ConfigTree parse_config_text(std::string_view text, const std::string& path);

/// `changes` laid over `base`: maps are merged key by key, all other values are replaced.
ConfigTree overlay(const ConfigTree& base, const ConfigTree& changes);

/// The tree with `dotted.key` set to `value` (YAML text: `8`, `fp8`, `{name: x}`, `[1, 2]`). Missing maps are created;
/// `key.0` is the first element of a list. `origin` names the flag in errors.
ConfigTree with_assignment(const ConfigTree& tree, std::string_view assignment, const std::string& origin);
ConfigTree with_value(const ConfigTree& tree, std::string_view dotted_key, const ConfigTree& value,
                      const std::string& origin);
/// `location`: where the key is written, for errors about it.
ConfigTree with_value(const ConfigTree& tree, std::string_view dotted_key, const ConfigTree& value,
                      const SourceLocation& location);

ConfigTree make_scalar(std::string text, const SourceLocation& location = {});
ConfigTree make_map(std::vector<ConfigNode::Entry> entries = {}, const SourceLocation& location = {});
ConfigTree make_list(std::vector<ConfigTree> items, const SourceLocation& location = {});

/// The tree as block YAML; parse(to_yaml(t)) equals t.
std::string to_yaml(const ConfigNode& node);

}  // namespace roofcast
