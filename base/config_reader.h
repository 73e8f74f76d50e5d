#pragma once
// Typed, checked access to a map of a ConfigTree. Every key that is read is recorded; finish() refuses the rest.

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

/// Inclusive bounds of a value; a value outside is a ConfigError that names both.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};
inline constexpr Range kAny{};
inline constexpr Range kAtLeastZero{0.0, std::numeric_limits<double>::infinity()};
inline constexpr Range kAtLeastOne{1.0, std::numeric_limits<double>::infinity()};
inline constexpr Range kFraction{0.0, 1.0};
/// Positive: zero is refused too.
inline constexpr Range kPositive{std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::infinity()};

/// Reads one map. Keys with a default may be absent; the others must be there. Values carry units
/// (`3.35 TB/s`, `80 GiB`, `989 TFLOP/s`, `4.5 us`, `700 W`, `2.49 USD/h`, `6 /s`); a bare number
/// where a unit is due is an error. A null value counts as absent for keys that have a default.
class ConfigReader {
 public:
  explicit ConfigReader(ConfigTree map, std::string what = "");  ///< throws unless a map; null reads as an empty map

  bool has(std::string_view key) const;  ///< present and not null; does not count as read

  std::string text(std::string_view key);
  std::string text(std::string_view key, std::string_view otherwise);
  bool boolean(std::string_view key);
  bool boolean(std::string_view key, bool otherwise);
  std::int64_t integer(std::string_view key, Range range = kAny);
  std::int64_t integer(std::string_view key, std::int64_t otherwise, Range range = kAny);
  double number(std::string_view key, Range range = kAny);
  double number(std::string_view key, double otherwise, Range range = kAny);

  Seconds time(std::string_view key);
  Seconds time(std::string_view key, Seconds otherwise);
  Bytes bytes(std::string_view key);
  Bytes bytes(std::string_view key, Bytes otherwise);
  BytesPerSecond bandwidth(std::string_view key);
  BytesPerSecond bandwidth(std::string_view key, BytesPerSecond otherwise);
  FlopsPerSecond flop_rate(std::string_view key);
  FlopsPerSecond flop_rate(std::string_view key, FlopsPerSecond otherwise);
  Watts power(std::string_view key, Watts otherwise);
  UsdPerHour price(std::string_view key, UsdPerHour otherwise);
  PerSecond rate(std::string_view key);                        ///< `6 /s`, `360 /min`
  PerSecond clock(std::string_view key, PerSecond otherwise);  ///< `1980 MHz`

  /// One of a closed set of names, by position in `names`; the error quotes them and the nearest.
  std::size_t choice(std::string_view key, std::span<const std::string_view> names);
  std::size_t choice(std::string_view key, std::span<const std::string_view> names, std::size_t otherwise);

  ConfigReader child(std::string_view key);  ///< a map
  std::optional<ConfigReader> optional_child(std::string_view key);
  std::vector<ConfigTree> list(std::string_view key);                     ///< items; absent = empty
  std::vector<double> numbers(std::string_view key, Range range = kAny);  ///< a list of numbers; absent = empty
  std::vector<std::string> texts(std::string_view key);  ///< a list of names, or one name; absent = empty
  ConfigTree tree(std::string_view key);                 ///< raw, counts as read; null when absent or null
  ConfigTree whole() const { return map_; }
  std::vector<std::string> keys() const;  ///< in the order written

  void ignore(std::string_view key);        ///< counts as read
  void ignore_rest() { all_read_ = true; }  ///< for documents of others (config.json)
  void finish();                            ///< throws at the first key nobody read, with the nearest valid name

  Mark mark() const { return map_->mark; }
  Mark mark_of(std::string_view key) const;  ///< of the value, or of the map if absent
  /// Throws at the key's value; the message begins with the key unless it already does.
  [[noreturn]] void fail(std::string_view key, const std::string& message) const;

 private:
  const ConfigTree* value_of(std::string_view key) const;  // null when absent or null
  const ConfigTree* read(std::string_view key);            // the same, noted as read
  const ConfigNode* scalar(std::string_view key, const char* expected);
  const ConfigNode& required(std::string_view key, const char* expected);
  [[noreturn]] void fail_missing(std::string_view key, const char* expected) const;
  double with_unit(std::string_view key, UnitKind kind);
  double with_unit(std::string_view key, UnitKind kind, double otherwise);

  ConfigTree map_;
  std::string what_;               ///< named in errors: "a GPU", "an engine"
  std::vector<std::string> read_;  ///< few, and most of them short: a search from the front costs less than a tree
  bool all_read_ = false;
  mutable std::vector<std::string> asked_;  ///< by has(): valid too, though nobody read them
};

/// A value with its unit parsed from text, for command-line flags (`--slo "2 s"`); throws ConfigError(origin: ...).
Seconds parse_time(std::string_view text, const std::string& origin);

}  // namespace roofcast
