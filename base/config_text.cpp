#include "base/config_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>

namespace roofcast {
namespace {

/// Length of the UTF-8 sequence at the beginning of the text, or 0 if it is invalid (RFC 3629; Unicode, table 3-7).
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return follows(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(1) > 0x9F;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool overlong = lead == 0xF0 && byte(1) < 0x90;
    const bool too_high = lead == 0xF4 && byte(1) > 0x8F;
    return follows(1) && follows(2) && follows(3) && !overlong && !too_high ? 4 : 0;
  }
  return 0;
}

/// Whether the first eight bytes are all between 0x20 and 0x7e. Then no byte has its highest bit set, neither itself,
/// nor plus 1, nor minus 0x20.
bool eight_are_plain(std::string_view text) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  std::uint64_t bytes = 0;
  if (text.size() < sizeof bytes) return false;
  std::memcpy(&bytes, text.data(), sizeof bytes);
  return (((bytes - 0x20 * kOnes) | (bytes + kOnes) | bytes) & 0x80 * kOnes) == 0;
}

/// The code unit of a \uXXXX at `at`, or -1.
int escaped_unit(std::string_view text, std::size_t at) {
  if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return -1;
  int unit = -1;
  const char* first = text.data() + at + 2;
  const auto [end, error] = std::from_chars(first, first + 4, unit, 16);
  return error == std::errc() && end == first + 4 ? unit : -1;
}

}  // namespace

std::optional<TextFault> find_text_fault(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] >= 0x20 && text[at] < 0x7f) {  // the most frequent case
      at += eight_are_plain(text.substr(at)) ? 8 : 1;
      continue;
    }
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool line_end = byte == '\n' || (byte == '\r' && text.substr(at + 1, 1) == "\n");
    if ((byte < 0x20 && byte != '\t' && !line_end) || byte == 0x7f) {
      return TextFault{at, fmt::format("control character 0x{:02x} in the text", byte)};
    }
    const std::size_t length = sequence_length(text.substr(at, 4));
    if (length == 0) return TextFault{at, fmt::format("not UTF-8 text: byte 0x{:02x}", byte)};
    at += length;
  }
  return std::nullopt;
}

SourceLocation location_at(std::string_view text, std::size_t offset, const std::string& path) {
  const std::string_view before = text.substr(0, offset);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return SourceLocation{path, static_cast<int>(lines) + 1, static_cast<int>(before.size() - line_start) + 1};
}

std::string join_surrogates(std::string_view text) {
  std::string out(text);
  for (std::size_t at = out.find('\\'); at != std::string::npos; at = out.find('\\', at)) {
    const int high = escaped_unit(out, at);
    const int low = escaped_unit(out, at + 6);
    if (high >= 0xD800 && high < 0xDC00 && low >= 0xDC00 && low < 0xE000) {
      const int point = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
      out.replace(at, 12, fmt::format("\\U{:08X}", point));
      at += 10;
    } else {
      at += 2;  // skip the escaped character, which may be a backslash
    }
  }
  return out;
}

}  // namespace roofcast
