#pragma once
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace roofcast::reports {

/// Text of an element or a quoted attribute: & < > " ' escaped, control characters and broken UTF-8 replaced.
std::string html_text(std::string_view text);
/// The same for the text of a command line, one line long: quoted only when the shell would read it otherwise.
std::string shell_word(std::string_view text);
/// JSON that may stand in a <script> element: no '<', no '&', nothing that ends a line in JavaScript alone.
std::string script_json(const nlohmann::ordered_json& json);
/// Broken UTF-8 and control characters (but newline and tab) become U+FFFD.
std::string clean_utf8(std::string_view text);
/// At most `limit` characters, the last one an ellipsis.
std::string shortened(std::string_view text, std::size_t limit);

}  // namespace roofcast::reports
