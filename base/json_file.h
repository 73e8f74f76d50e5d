#pragma once
#include <string>

#include <nlohmann/json.hpp>

namespace roofcast {

/// Reads one JSON document of at most 1 GiB. Throws ConfigError `path:line:column` at the first fault; the message says
/// that `expected` was expected.
nlohmann::ordered_json read_json(const std::string& path, const std::string& expected);
nlohmann::ordered_json parse_json(const std::string& path, const std::string& text, const std::string& expected);

}  // namespace roofcast
