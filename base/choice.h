#pragma once
#include <span>
#include <string_view>

#include "base/error.h"

namespace roofcast {

/// The index of `word` in `names`. Throws ConfigError at `location`: "unknown KIND 'WORD'; nearest is ... (valid:
/// ...)".
std::size_t choice_of(std::string_view kind, std::string_view word, std::span<const std::string_view> names,
                      const SourceLocation& location);

}  // namespace roofcast
