#include "base/config_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/config_parse.h"
#include "base/text.h"

namespace roofcast {
namespace {

constexpr std::size_t kMaxParts = 100;  // of a dotted key; functions on trees are recursive

bool is_nothing(const ConfigTree& tree) { return !tree || tree->kind == ConfigNode::Kind::kNull; }

/// One assignment: the parts of its key, its value, and where it is written, for errors.
struct Assignment {
  std::vector<std::string> parts;
  ConfigTree value;
  SourceLocation location;

  std::string path_to(std::size_t depth) const { return join(std::span(parts).first(depth), "."); }
};

ConfigTree assign(const ConfigTree& tree, const Assignment& what, std::size_t depth);

ConfigTree assign_in_map(const ConfigNode& map, const Assignment& what, std::size_t depth) {
  const std::string& key = what.parts[depth];
  auto copy = std::make_shared<ConfigNode>(map);
  for (ConfigNode::Entry& entry : copy->entries) {
    if (entry.key != key) continue;
    entry.value = assign(entry.value, what, depth + 1);
    return copy;
  }
  copy->entries.push_back({key, what.location, assign(nullptr, what, depth + 1)});
  return copy;
}

ConfigTree assign_in_list(const ConfigNode& list, const Assignment& what, std::size_t depth) {
  const std::string& part = what.parts[depth];
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
  if (error != std::errc() || end != part.data() + part.size() || index >= list.items.size()) {
    throw ConfigError(what.location, fmt::format("'{}' is a list of {}, which has no element '{}' (counted from 0)",
                                                 what.path_to(depth), list.items.size(), part));
  }
  auto copy = std::make_shared<ConfigNode>(list);
  copy->items[index] = assign(copy->items[index], what, depth + 1);
  return copy;
}

ConfigTree assign(const ConfigTree& tree, const Assignment& what, std::size_t depth) {
  if (depth == what.parts.size()) return what.value;
  if (is_nothing(tree)) return assign_in_map(*make_map({}, what.location), what, depth);
  if (depth == 0 && tree->kind != ConfigNode::Kind::kMap)
    throw ConfigError(tree->location, "the document is not a map of keys");
  if (tree->kind == ConfigNode::Kind::kList) return assign_in_list(*tree, what, depth);
  if (tree->kind == ConfigNode::Kind::kMap) return assign_in_map(*tree, what, depth);
  // `gpu: h100-sxm` is short for `gpu: {name: h100-sxm}`, so gpu.memory has a place to go.
  return assign_in_map(*make_map({{"name", tree->location, tree}}, tree->location), what, depth);
}

}  // namespace

const ConfigTree* ConfigNode::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

ConfigTree overlay(const ConfigTree& base, const ConfigTree& changes) {
  if (!changes) return base;
  const bool both_maps = base && base->kind == ConfigNode::Kind::kMap && changes->kind == ConfigNode::Kind::kMap;
  if (!both_maps) return changes;
  auto result = std::make_shared<ConfigNode>(*base);
  result->location = changes->location;  // errors should point to the user's own file
  for (const ConfigNode::Entry& change : changes->entries) {
    const auto same = [&](const ConfigNode::Entry& entry) { return entry.key == change.key; };
    // Among those of the base: the keys of one map differ from each other.
    const auto end = result->entries.begin() + static_cast<std::ptrdiff_t>(base->entries.size());
    const auto found = std::find_if(result->entries.begin(), end, same);
    if (found == end) {
      result->entries.push_back(change);
    } else {
      found->key_location = change.key_location;
      found->value = overlay(found->value, change.value);
    }
  }
  return result;
}

ConfigTree with_assignment(const ConfigTree& tree, std::string_view assignment, const std::string& origin) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    throw ConfigError(SourceLocation{origin}, fmt::format("must be KEY=VALUE, got '{}'", assignment));
  }
  const std::string_view key = trim(assignment.substr(0, equals));
  const std::string_view text = trim(assignment.substr(equals + 1));
  if (text.empty()) {
    throw ConfigError(SourceLocation{origin}, fmt::format("'{}' has no value; '{}=null' removes a value", key, key));
  }
  return with_value(tree, key, parse_config_value(text, origin), origin);
}

ConfigTree with_value(const ConfigTree& tree, std::string_view dotted_key, const ConfigTree& value,
                      const std::string& origin) {
  return with_value(tree, dotted_key, value, SourceLocation{origin});
}

ConfigTree with_value(const ConfigTree& tree, std::string_view dotted_key, const ConfigTree& value,
                      const SourceLocation& location) {
  const Assignment what{split(dotted_key, '.'), value, location};
  const auto empty = [](const std::string& part) { return part.empty(); };
  if (std::any_of(what.parts.begin(), what.parts.end(), empty) || what.parts.size() > kMaxParts) {
    throw ConfigError(what.location, fmt::format("'{}' is not a key such as 'parallelism.tp'", dotted_key));
  }
  return assign(tree, what, 0);
}

ConfigTree make_scalar(std::string text, const SourceLocation& location) {
  auto node = std::make_shared<ConfigNode>();
  node->kind = ConfigNode::Kind::kScalar;
  node->location = location;
  node->scalar = std::move(text);
  return node;
}

ConfigTree make_map(std::vector<ConfigNode::Entry> entries, const SourceLocation& location) {
  auto node = std::make_shared<ConfigNode>();
  node->kind = ConfigNode::Kind::kMap;
  node->location = location;
  node->entries = std::move(entries);
  return node;
}

ConfigTree make_list(std::vector<ConfigTree> items, const SourceLocation& location) {
  auto node = std::make_shared<ConfigNode>();
  node->kind = ConfigNode::Kind::kList;
  node->location = location;
  node->items = std::move(items);
  return node;
}

}  // namespace roofcast
