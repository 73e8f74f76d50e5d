#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace roofcast {

/// Length of the first character if a terminal obeys it instead of showing it: a control character other than line end
/// and tab, or one that reverses text. Else 0.
std::size_t control_length(std::string_view text);
/// The text with these characters escaped byte by byte, as in \x1b.
std::string without_controls(std::string_view text);

}  // namespace roofcast
