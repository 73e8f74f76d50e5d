#pragma once
#include <string>
#include <string_view>

#include "base/config_node.h"

namespace roofcast {

/// Parses the value of a command-line flag as YAML. Locations in it name only the flag, without a line.
ConfigTree parse_config_value(std::string_view text, const std::string& origin);

}  // namespace roofcast
