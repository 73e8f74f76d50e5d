#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace roofcast {

/// Reads one JSON document of at most 1 GiB. Throws ConfigError `path:line:column` at the first fault; the message says
/// that `expected` was expected.
nlohmann::ordered_json read_json(const std::string& path, const std::string& expected);
nlohmann::ordered_json parse_json(const std::string& path, const std::string& text, const std::string& expected);

/// Throws ConfigError if parsing the text would take too much memory, stack or time. Returns the number of keys of the
/// outermost object. The functions above call it; other parsers need it, too.
std::size_t check_json_size(const std::string& path, std::string_view text);

}  // namespace roofcast
