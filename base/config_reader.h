#pragma once
// Typed, checked access to a map of a ConfigTree. Records every key that is read; finish() rejects the others.

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config_node.h"
#include "base/units.h"

namespace roofcast {

enum class UnitKind : int;

/// Inclusive bounds of a value. A value outside is a ConfigError that names the value and the bounds.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};
inline constexpr Range kAny{};
inline constexpr Range kAtLeastZero{0.0, std::numeric_limits<double>::infinity()};
inline constexpr Range kAtLeastOne{1.0, std::numeric_limits<double>::infinity()};
inline constexpr Range kFraction{0.0, 1.0};
/// Zero is rejected, too.
inline constexpr Range kPositive{std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::infinity()};

/// Reads one map. Keys with a default may be absent, all others are required. Values carry units (`3.35 TB/s`, `80
/// GiB`, `989 TFLOP/s`, `4.5 us`, `700 W`, `2.49 USD/h`, `6 /s`); a number without its unit is an error. A null value
/// counts as absent for keys that have a default.
class ConfigReader {
 public:
  explicit ConfigReader(ConfigTree map,
                        std::string what = "");  ///< throws unless it is a map; null reads as an empty map

  bool has(std::string_view key) const;  ///< present and not null; does not count as a read

  std::string text(std::string_view key);
  std::string text(std::string_view key, std::string_view default_value);
  bool boolean(std::string_view key);
  bool boolean(std::string_view key, bool default_value);
  std::int64_t integer(std::string_view key, Range range = kAny);
  std::int64_t integer(std::string_view key, std::int64_t default_value, Range range = kAny);
  double number(std::string_view key, Range range = kAny);
  double number(std::string_view key, double default_value, Range range = kAny);

  Seconds time(std::string_view key);
  Seconds time(std::string_view key, Seconds default_value);
  Bytes bytes(std::string_view key);
  Bytes bytes(std::string_view key, Bytes default_value);
  BytesPerSecond bandwidth(std::string_view key);
  BytesPerSecond bandwidth(std::string_view key, BytesPerSecond default_value);
  FlopsPerSecond flop_rate(std::string_view key);
  FlopsPerSecond flop_rate(std::string_view key, FlopsPerSecond default_value);
  Watts power(std::string_view key, Watts default_value);
  UsdPerHour price(std::string_view key, UsdPerHour default_value);
  PerSecond rate(std::string_view key);                            ///< `6 /s`, `360 /min`
  PerSecond clock(std::string_view key, PerSecond default_value);  ///< `1980 MHz`

  /// Index in `names`, the closed set of valid names. The error lists them and the nearest one.
  std::size_t choice(std::string_view key, std::span<const std::string_view> names);
  std::size_t choice(std::string_view key, std::span<const std::string_view> names, std::size_t default_value);

  ConfigReader child(std::string_view key);  ///< a map
  std::optional<ConfigReader> optional_child(std::string_view key);
  std::vector<ConfigTree> list(std::string_view key);                     ///< items; absent = empty
  std::vector<double> numbers(std::string_view key, Range range = kAny);  ///< a list of numbers; absent = empty
  std::vector<std::string> texts(std::string_view key);  ///< a list of names, or one name; absent = empty
  ConfigTree tree(std::string_view key);                 ///< unparsed; counts as read; null when absent or null
  ConfigTree whole() const { return map_; }
  std::vector<std::string> keys() const;  ///< in the order written

  void ignore(std::string_view key);        ///< counts as read
  void ignore_rest() { all_read_ = true; }  ///< for documents with keys that are not ours (config.json)
  void finish();                            ///< throws at the first unread key, with the nearest valid name

  SourceLocation location() const { return map_->location; }
  SourceLocation location_of(std::string_view key) const;  ///< of the value, or of the map if the key is absent
  /// Throws at the key's value. The message is prefixed by the key unless it begins with it.
  [[noreturn]] void fail(std::string_view key, const std::string& message) const;

 private:
  const ConfigTree* value_of(std::string_view key) const;  // null when absent or null
  const ConfigTree* read(std::string_view key);            // as value_of(); marks the key as read
  const ConfigNode* scalar(std::string_view key, const char* expected);
  const ConfigNode& required(std::string_view key, const char* expected);
  [[noreturn]] void fail_missing(std::string_view key, const char* expected) const;
  double with_unit(std::string_view key, UnitKind kind);
  double with_unit(std::string_view key, UnitKind kind, double default_value);

  ConfigTree map_;
  std::string what_;               ///< named in errors: "a GPU", "an engine"
  std::vector<std::string> read_;  ///< short, so a linear search is faster than a set
  bool all_read_ = false;
  mutable std::vector<std::string> asked_;  ///< keys passed to has(): valid even if never read
};

/// Parses a time with its unit from a command-line flag (`--slo "2 s"`). Throws ConfigError(origin: ...).
Seconds parse_time(std::string_view text, const std::string& origin);

}  // namespace roofcast
