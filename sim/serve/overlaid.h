#pragma once
// Helpers of the workload parsers: keys left over from a workload that was overridden, and file names.

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/config_reader.h"

namespace roofcast {

/// A scenario that lays `{process: closed_loop, concurrency: 8}` over a named workload leaves the `rate` of that
/// workload in the map. Such a key comes from another file than the `selector` key; one that is written beside the
/// selector, or by a flag over the selector of a file, is no such key.
inline bool is_overlaid(const ConfigReader& in, std::string_view selector, std::string_view key) {
  if (!in.has(key)) return false;
  const std::string written_in = in.mark_of(key).path.str();
  return written_in != in.mark_of(selector).path.str() && !written_in.starts_with("--");
}
/// Passes those over; the others stay errors of finish().
inline void ignore_overlaid(ConfigReader& in, std::string_view selector, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (is_overlaid(in, selector, key)) in.ignore(key);
  }
}

/// `file` as seen from the YAML that names it; from the working directory when a flag does.
std::string beside(const std::string& file, const Mark& named_at);

}  // namespace roofcast
