#pragma once
// Helpers of the workload parsers: keys left over from an overridden workload, and paths of files.

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/config_reader.h"

namespace roofcast {

/// A scenario that overrides a named workload with `{process: closed_loop, concurrency: 8}` leaves the workload's
/// `rate` in the map. Such a leftover key comes from another file than the `selector` key. A key from the same file as
/// the selector is not a leftover, nor is a key from a flag.
inline bool is_overlaid(const ConfigReader& in, std::string_view selector, std::string_view key) {
  if (!in.has(key)) return false;
  const std::string written_in = in.location_of(key).path.str();
  return written_in != in.location_of(selector).path.str() && !written_in.starts_with("--");
}
/// Ignores leftover keys; finish() reports the others as errors.
inline void ignore_overlaid(ConfigReader& in, std::string_view selector, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (is_overlaid(in, selector, key)) in.ignore(key);
  }
}

/// The path of `file` relative to the YAML that names it, or to the working directory if a flag does.
std::string beside(const std::string& file, const SourceLocation& named_at);

}  // namespace roofcast
