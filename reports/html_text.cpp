#include "reports/html_text.h"

#include <algorithm>
#include <cstddef>

#include "base/control_characters.h"

namespace roofcast::reports {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Length of the well-formed UTF-8 sequence at `i` (RFC 3629: no overlong forms, no surrogates); 0 if malformed.
std::size_t sequence_length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0U; };
  const unsigned lead = byte(i);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xC2 && lead < 0xE0   ? 2
                             : lead >= 0xE0 && lead < 0xF0 ? 3
                             : lead >= 0xF0 && lead < 0xF5 ? 4
                                                           : 0;
  for (std::size_t k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xC0U) != 0x80U) return 0;
  }
  const unsigned second = byte(i + 1);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second >= 0xA0)) return 0;
  if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second >= 0x90)) return 0;
  return length;
}

}  // namespace

std::string clean_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = sequence_length(text, i);
    const std::size_t control = control_length(text.substr(i));
    if (length == 0 || control > 0) {
      out += kReplacement;
      i += std::max<std::size_t>(control, 1);
    } else {
      out += text.substr(i, length);
      i += length;
    }
  }
  return out;
}

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : clean_utf8(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  std::string out = "'";
  for (const char c : clean_utf8(text)) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c == '\n' ? ' ' : c;
    }
  }
  return out + "'";
}

std::string script_json(const nlohmann::ordered_json& json) {
  const std::string plain = json.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);  // ASCII alone
  std::string out;
  out.reserve(plain.size());
  for (const char c : plain) {
    switch (c) {  // only inside strings: JSON syntax uses none of these
      case '<':
        out += "\\u003c";
        break;
      case '>':
        out += "\\u003e";
        break;
      case '&':
        out += "\\u0026";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string shortened(std::string_view text, std::size_t limit) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U) continue;
    if (++characters > limit) {
      std::size_t end = i;  // one character less, for the ellipsis
      do --end;
      while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U);
      return std::string(text.substr(0, end)) + "\xE2\x80\xA6";
    }
  }
  return std::string(text);
}

}  // namespace roofcast::reports
