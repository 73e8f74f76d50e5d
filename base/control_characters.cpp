#include "base/control_characters.h"

#include <algorithm>

#include <fmt/format.h>

namespace roofcast {

std::size_t control_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(0), second = byte(1), third = byte(2);
  if (text.empty() || (first >= 0x20 && first < 0x7f) || first == '\n' || first == '\t') return 0;
  if (first < 0x80) return 1;
  if (first == 0xC2 && second >= 0x80 && second < 0xA0) return 2;
  const bool embedding = second == 0x80 && third >= 0xAA && third <= 0xAE;  // U+202A to U+202E
  const bool isolate = second == 0x81 && third >= 0xA6 && third <= 0xA9;    // U+2066 to U+2069
  return first == 0xE2 && (embedding || isolate) ? 3 : 0;
}

std::string without_controls(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t control = control_length(text);
    for (std::size_t i = 0; i < control; ++i) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
    if (control == 0) out += text.front();
    text.remove_prefix(std::max<std::size_t>(control, 1));
  }
  return out;
}

}  // namespace roofcast
