#pragma once
// Finds "true" and "false" written in quotes where a boolean is meant.

#include <string>
#include <vector>

#include "base/config_node.h"

namespace roofcast {

struct QuotedSwitch {
  std::string key;
  ConfigTree value;
};

/// All values "true" and "false" in quotes, at any depth. ConfigReader::boolean() accepts them.
std::vector<QuotedSwitch> quoted_switches(const ConfigTree& tree);
/// `'KEY': false in quotes is read as false`.
std::string text_of(const QuotedSwitch& found);

}  // namespace roofcast
