#pragma once
// Checks and rewrites that a text needs before the YAML scanner reads it.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace roofcast {

struct TextFault {
  std::size_t offset = 0;
  std::string what;
};

/// The first invalid byte: a broken UTF-8 sequence or a control character (the scanner takes byte 4 for the end of the
/// file).
std::optional<TextFault> find_text_fault(std::string_view text);

SourceLocation location_at(std::string_view text, std::size_t offset, const std::string& path);

/// JSON writes characters beyond U+FFFF as two escapes, \uD83D\uDE00, which YAML does not support. Each pair becomes
/// one \U0001F600; later columns of that line move by two.
std::string join_surrogates(std::string_view text);

}  // namespace roofcast
