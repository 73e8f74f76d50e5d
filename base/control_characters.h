#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace roofcast {

/// The bytes of a character at the beginning that a terminal acts on instead of showing it: a control other than line
/// end and tab, or one that reverses text; 0: there is none.
std::size_t control_length(std::string_view text);
/// The text with each byte of these as \x1b.
std::string without_controls(std::string_view text);

}  // namespace roofcast
