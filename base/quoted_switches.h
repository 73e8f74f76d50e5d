#pragma once
// "false" written as text where true or false is meant.

#include <string>
#include <vector>

#include "base/config_node.h"

namespace roofcast {

struct QuotedSwitch {
  std::string key;
  ConfigTree value;
};

/// The values "true" and "false" in quotes, in all maps of a document. ConfigReader::boolean() reads them as what they
/// say.
std::vector<QuotedSwitch> quoted_switches(const ConfigTree& tree);
/// `'KEY': false in quotes is read as false`.
std::string text_of(const QuotedSwitch& found);

}  // namespace roofcast
