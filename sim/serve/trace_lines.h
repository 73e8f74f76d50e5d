#pragma once
// Shared by the trace readers: the current position, and reading line by line.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "sim/serve/traces.h"

namespace roofcast {

constexpr double kMostTokens = 1e8;

/// A line of a trace, for error messages.
struct Place {
  const std::string& path;
  int line;
  [[noreturn]] void fail(const std::string& message) const { throw ConfigError(Mark{path, line}, message); }
};

inline int tokens_of(std::optional<double> value, std::string_view key, const Place& place) {
  if (!value) place.fail(fmt::format("'{}' is missing", key));
  if (*value >= 1.0 && *value <= kMostTokens && *value == std::floor(*value)) return static_cast<int>(*value);
  place.fail(fmt::format("'{}' must be a whole number of tokens, at least 1, got {}", key, *value));
}

template <typename Reader>
void each_line(std::string_view text, const std::string& path, Reader reader) {
  Place place{path, 0};
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++place.line;
    if (!line.empty()) reader.add(line, place);
  }
}

void read_agentic_rows(std::string_view text, const std::string& path, Trace& trace);

}  // namespace roofcast
