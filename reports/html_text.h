#pragma once
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace roofcast::reports {

/// Escapes text for an element or a quoted attribute: & < > " '; replaces control characters and malformed UTF-8.
std::string html_text(std::string_view text);
/// Quotes a word for a one-line shell command, if needed.
std::string shell_word(std::string_view text);
/// JSON for a <script> element: no '<', no '&', no JavaScript line terminators.
std::string script_json(const nlohmann::ordered_json& json);
/// Replaces malformed UTF-8 and control characters (except newline and tab) by U+FFFD.
std::string clean_utf8(std::string_view text);
/// Truncates to `limit` characters, the last one an ellipsis.
std::string shortened(std::string_view text, std::size_t limit);

}  // namespace roofcast::reports
