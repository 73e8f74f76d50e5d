#pragma once
// Shared by the trace readers: the current position, and reading line by line.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/lines.h"
#include "base/text.h"
#include "sim/serve/traces.h"

namespace roofcast {

constexpr double kMostTokens = 1e8;
/// With the file itself, these take less than 2 GB.
constexpr std::size_t kMostRows = 20'000'000, kMostSessions = 4'000'000, kMostHashes = 50'000'000;

/// A line of a trace, for error messages.
struct Place {
  const std::string& path;
  int line;
  [[noreturn]] void fail(const std::string& message) const { throw ConfigError(SourceLocation{path, line}, message); }
};

inline int tokens_of(std::optional<double> value, std::string_view key, const Place& place) {
  if (!value) place.fail(fmt::format("'{}' is missing", key));
  if (*value >= 1.0 && *value <= kMostTokens && *value == std::floor(*value)) return static_cast<int>(*value);
  place.fail(fmt::format("'{}' must be a whole number of tokens, at least 1, got {}", key, *value));
}

inline void add_row(Trace& trace, const Trace::Row& row, const Place& place) {
  if (trace.rows.size() >= kMostRows) place.fail(fmt::format("more than {} requests in one trace", kMostRows));
  trace.rows.push_back(row);
}

/// What the rows before this one have added to.
inline void check_size(const Trace& trace, const Place& place) {
  if (static_cast<std::size_t>(trace.sessions) > kMostSessions)
    place.fail(fmt::format("more than {} sessions in one trace", kMostSessions));
  if (trace.block_hashes.size() > kMostHashes) place.fail(fmt::format("more than {} hashes in one trace", kMostHashes));
}

template <typename Reader>
void add_lines(std::string_view text, const std::string& path, Trace& trace, Reader reader) {
  trace.rows.reserve(std::min(text.size() / 64, kMostRows));
  each_line(text, [&](std::string_view line, int number) {
    const Place place{path, number};
    check_size(trace, place);
    if (!trim(line).empty()) reader.add(trim(line), place);
  });
  check_size(trace, Place{path, 0});
}

void read_agentic_rows(std::string_view text, const std::string& path, Trace& trace);

}  // namespace roofcast
