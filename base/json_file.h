#pragma once
#include <string>

#include <nlohmann/json.hpp>

namespace roofcast {

/// One JSON document, at most 1 GiB. Throws ConfigError `path:line:column` where it goes wrong; `expected` says what
/// should stand there.
nlohmann::ordered_json read_json(const std::string& path, const std::string& expected);
nlohmann::ordered_json parse_json(const std::string& path, const std::string& text, const std::string& expected);

}  // namespace roofcast
