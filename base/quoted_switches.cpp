#include "base/quoted_switches.h"

#include <fmt/format.h>

namespace roofcast {
namespace {

void collect(const ConfigTree& tree, std::vector<QuotedSwitch>& out) {
  if (!tree) return;
  for (const ConfigTree& item : tree->items) collect(item, out);
  for (const ConfigNode::Entry& entry : tree->entries) {
    collect(entry.value, out);
    if (!entry.value || entry.value->kind != ConfigNode::Kind::kScalar || !entry.value->quoted) continue;
    if (entry.value->scalar == "true" || entry.value->scalar == "false") out.push_back({entry.key, entry.value});
  }
}

}  // namespace

std::vector<QuotedSwitch> quoted_switches(const ConfigTree& tree) {
  std::vector<QuotedSwitch> out;
  collect(tree, out);
  return out;
}

std::string text_of(const QuotedSwitch& found) {
  return fmt::format("'{}': {} in quotes is read as {}", found.key, found.value->scalar, found.value->scalar);
}

}  // namespace roofcast
