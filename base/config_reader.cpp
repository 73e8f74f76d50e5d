#include "base/config_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/choice.h"
#include "base/number_text.h"
#include "base/text.h"

namespace roofcast {
namespace {

using Kind = ConfigNode::Kind;

/// The user's value as quoted in errors.
std::string shown(const ConfigNode& node) {
  constexpr std::size_t kLongest = 60;
  switch (node.kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a map";
    case Kind::kScalar:
      break;
  }
  const bool cut = node.scalar.size() > kLongest;
  const std::string text = cut ? node.scalar.substr(0, kLongest) + "..." : node.scalar;
  return node.quoted ? fmt::format("the quoted text '{}'", text) : fmt::format("'{}'", text);
}

[[noreturn]] void fail_value(const ConfigNode& node, std::string_view key, std::string_view expected) {
  throw ConfigError(node.location, fmt::format("'{}' must be {}, got {}", key, expected, shown(node)));
}

void check_fault(NumberFault fault, const ConfigNode& node, std::string_view key, std::string_view expected) {
  if (fault == NumberFault::kNone) return;
  if (fault == NumberFault::kOutOfRange) {
    throw ConfigError(node.location, fmt::format("'{}' is out of range: {}", key, shown(node)));
  }
  fail_value(node, key, expected);
}

void check_range(double value, Range range, const ConfigNode& node, std::string_view key) {
  if (value >= range.low && value <= range.high) return;
  const bool low = std::isfinite(range.low), high = std::isfinite(range.high);
  std::string bounds;
  if (low && high) {
    bounds = fmt::format("between {} and {}", range.low, range.high);
  } else if (high) {
    bounds = fmt::format("at most {}", range.high);
  } else if (range.low == kPositive.low) {
    bounds = "more than 0";
  } else {
    bounds = fmt::format("at least {}", range.low);
  }
  fail_value(node, key, bounds);
}

double number_of(const ConfigNode& node, std::string_view key, Range range) {
  double value = 0.0;
  if (node.kind != Kind::kScalar || node.quoted) fail_value(node, key, "a number");
  check_fault(parse_number(node.scalar, value), node, key, "a number");
  check_range(value, range, node, key);
  return value;
}

std::int64_t integer_of(const ConfigNode& node, std::string_view key, Range range) {
  std::int64_t value = 0;
  if (node.quoted) fail_value(node, key, "a whole number");
  check_fault(parse_integer(node.scalar, value), node, key, "a whole number");
  check_range(static_cast<double>(value), range, node, key);
  return value;
}

/// Text in quotes is accepted, because some published configs have it (quoted_switches()).
bool boolean_of(const ConfigNode& node, std::string_view key) {
  if (node.scalar == "true") return true;
  if (node.scalar == "false") return false;
  fail_value(node, key, "true or false");
}

constexpr double kMostWithUnit = 1e30;  ///< in base units; products of a few such values stay finite

double value_with_unit(const ConfigNode& node, std::string_view key, UnitKind kind) {
  double value = 0.0;
  check_fault(parse_with_unit(node.scalar, kind, value), node, key, expected_of(kind));
  if (value < 0.0) throw ConfigError(node.location, fmt::format("'{}' must not be negative, got {}", key, shown(node)));
  const bool divides = kind == UnitKind::kBandwidth || kind == UnitKind::kFlopRate;  // these are divided by
  if (divides && value == 0.0) throw ConfigError(node.location, fmt::format("'{}' must not be zero", key));
  if (value > kMostWithUnit || (divides && value < 1.0))
    throw ConfigError(node.location, fmt::format("'{}' is out of range: {}", key, shown(node)));
  return value;
}

bool contains(const std::vector<std::string>& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

void note(std::vector<std::string>& keys, std::string_view key) {
  if (contains(keys, key)) return;
  if (keys.empty()) keys.reserve(16);  // enough for most maps
  keys.emplace_back(key);
}

}  // namespace

ConfigReader::ConfigReader(ConfigTree map, std::string what) : map_(std::move(map)), what_(std::move(what)) {
  if (!map_) map_ = make_map();
  if (map_->kind == Kind::kNull) map_ = make_map({}, map_->location);
  if (map_->kind == Kind::kMap) return;
  throw ConfigError(map_->location,
                    fmt::format("{} must be a map of keys, got {}", what_.empty() ? "this" : what_, shown(*map_)));
}

// --- access -------------------------------------------------------------------------------------

bool ConfigReader::has(std::string_view key) const {
  note(asked_, key);
  return value_of(key) != nullptr;
}

const ConfigTree* ConfigReader::value_of(std::string_view key) const {
  const ConfigTree* found = map_->find(key);
  return found != nullptr && *found && (*found)->kind != Kind::kNull ? found : nullptr;
}

const ConfigTree* ConfigReader::read(std::string_view key) {
  ignore(key);
  return value_of(key);
}

const ConfigNode* ConfigReader::scalar(std::string_view key, const char* expected) {
  const ConfigTree* found = read(key);
  if (found == nullptr) return nullptr;
  if ((*found)->kind != Kind::kScalar) fail_value(**found, key, expected);
  return found->get();
}

const ConfigNode& ConfigReader::required(std::string_view key, const char* expected) {
  if (const ConfigNode* found = scalar(key, expected)) return *found;
  fail_missing(key, expected);
}

void ConfigReader::fail_missing(std::string_view key, const char* expected) const {
  const ConfigTree* null_value = map_->find(key);
  if (null_value != nullptr && *null_value) fail_value(**null_value, key, expected);
  std::vector<std::string> unread;  // one of them may be the key with a spelling mistake
  for (const ConfigNode::Entry& entry : map_->entries) {
    if (!all_read_ && !contains(read_, entry.key) && !contains(asked_, entry.key)) unread.push_back(entry.key);
  }
  const std::string near = nearest_name(key, unread);
  const std::string message = fmt::format("missing key '{}'{}", key, what_.empty() ? "" : " of " + what_);
  for (const ConfigNode::Entry& entry : map_->entries) {
    if (!near.empty() && entry.key == near)
      throw ConfigError(entry.key_location, fmt::format("{}; did you mean '{}'?", message, near));
  }
  throw ConfigError(map_->location, message);
}

double ConfigReader::with_unit(std::string_view key, UnitKind kind) {
  return value_with_unit(required(key, expected_of(kind)), key, kind);
}

double ConfigReader::with_unit(std::string_view key, UnitKind kind, double default_value) {
  const ConfigNode* node = scalar(key, expected_of(kind));
  return node != nullptr ? value_with_unit(*node, key, kind) : default_value;
}

// --- plain values -------------------------------------------------------------------------------

std::string ConfigReader::text(std::string_view key) { return required(key, "text").scalar; }

std::string ConfigReader::text(std::string_view key, std::string_view default_value) {
  const ConfigNode* node = scalar(key, "text");
  return node != nullptr ? node->scalar : std::string(default_value);
}

bool ConfigReader::boolean(std::string_view key) { return boolean_of(required(key, "true or false"), key); }

bool ConfigReader::boolean(std::string_view key, bool default_value) {
  const ConfigNode* node = scalar(key, "true or false");
  return node != nullptr ? boolean_of(*node, key) : default_value;
}

std::int64_t ConfigReader::integer(std::string_view key, Range range) {
  return integer_of(required(key, "a whole number"), key, range);
}

std::int64_t ConfigReader::integer(std::string_view key, std::int64_t default_value, Range range) {
  const ConfigNode* node = scalar(key, "a whole number");
  return node != nullptr ? integer_of(*node, key, range) : default_value;
}

double ConfigReader::number(std::string_view key, Range range) {
  return number_of(required(key, "a number"), key, range);
}

double ConfigReader::number(std::string_view key, double default_value, Range range) {
  const ConfigNode* node = scalar(key, "a number");
  return node != nullptr ? number_of(*node, key, range) : default_value;
}

std::size_t ConfigReader::choice(std::string_view key, std::span<const std::string_view> names) {
  const ConfigNode& node = required(key, "a name");
  return choice_of(key, node.scalar, names, node.location);
}

std::size_t ConfigReader::choice(std::string_view key, std::span<const std::string_view> names,
                                 std::size_t default_value) {
  const ConfigNode* node = scalar(key, "a name");
  return node != nullptr ? choice_of(key, node->scalar, names, node->location) : default_value;
}

// --- values with units --------------------------------------------------------------------------

Seconds ConfigReader::time(std::string_view key) { return Seconds(with_unit(key, UnitKind::kTime)); }

Seconds ConfigReader::time(std::string_view key, Seconds default_value) {
  return Seconds(with_unit(key, UnitKind::kTime, default_value.base()));
}

Bytes ConfigReader::bytes(std::string_view key) { return Bytes(with_unit(key, UnitKind::kBytes)); }

Bytes ConfigReader::bytes(std::string_view key, Bytes default_value) {
  return Bytes(with_unit(key, UnitKind::kBytes, default_value.base()));
}

BytesPerSecond ConfigReader::bandwidth(std::string_view key) {
  return BytesPerSecond(with_unit(key, UnitKind::kBandwidth));
}

BytesPerSecond ConfigReader::bandwidth(std::string_view key, BytesPerSecond default_value) {
  return BytesPerSecond(with_unit(key, UnitKind::kBandwidth, default_value.base()));
}

FlopsPerSecond ConfigReader::flop_rate(std::string_view key) {
  return FlopsPerSecond(with_unit(key, UnitKind::kFlopRate));
}

FlopsPerSecond ConfigReader::flop_rate(std::string_view key, FlopsPerSecond default_value) {
  return FlopsPerSecond(with_unit(key, UnitKind::kFlopRate, default_value.base()));
}

Watts ConfigReader::power(std::string_view key, Watts default_value) {
  return Watts{with_unit(key, UnitKind::kPower, default_value.value)};
}

UsdPerHour ConfigReader::price(std::string_view key, UsdPerHour default_value) {
  return UsdPerHour{with_unit(key, UnitKind::kPrice, default_value.value)};
}

PerSecond ConfigReader::clock(std::string_view key, PerSecond default_value) {
  return PerSecond(with_unit(key, UnitKind::kClock, default_value.base()));
}

PerSecond ConfigReader::rate(std::string_view key) { return PerSecond(with_unit(key, UnitKind::kRate)); }

// --- maps and lists -----------------------------------------------------------------------------

ConfigReader ConfigReader::child(std::string_view key) {
  ignore(key);
  const ConfigTree* found = map_->find(key);  // `key:` with nothing below it is an empty map
  if (found == nullptr) fail_missing(key, "a map");
  return ConfigReader(*found, fmt::format("'{}'", key));
}

std::optional<ConfigReader> ConfigReader::optional_child(std::string_view key) {
  const ConfigTree* found = read(key);
  return found != nullptr ? std::optional(child(key)) : std::nullopt;
}

std::vector<ConfigTree> ConfigReader::list(std::string_view key) {
  const ConfigTree* found = read(key);
  if (found == nullptr) return {};
  if ((*found)->kind != Kind::kList) fail_value(**found, key, "a list");
  return (*found)->items;
}

std::vector<double> ConfigReader::numbers(std::string_view key, Range range) {
  std::vector<double> values;
  for (const ConfigTree& item : list(key))
    values.push_back(number_of(*item, fmt::format("{}.{}", key, values.size()), range));
  return values;
}

std::vector<std::string> ConfigReader::texts(std::string_view key) {
  const ConfigTree* found = read(key);
  if (found == nullptr) return {};
  if ((*found)->kind == Kind::kScalar) return {(*found)->scalar};
  std::vector<std::string> values;
  for (const ConfigTree& item : list(key)) {
    if (item->kind != Kind::kScalar) fail_value(*item, fmt::format("{}.{}", key, values.size()), "text");
    values.push_back(item->scalar);
  }
  return values;
}

ConfigTree ConfigReader::tree(std::string_view key) {
  const ConfigTree* found = read(key);
  return found != nullptr ? *found : nullptr;
}

std::vector<std::string> ConfigReader::keys() const {
  std::vector<std::string> names;
  for (const ConfigNode::Entry& entry : map_->entries) names.push_back(entry.key);
  return names;
}

// --- the end ------------------------------------------------------------------------------------

void ConfigReader::ignore(std::string_view key) { note(read_, key); }

void ConfigReader::finish() {
  if (all_read_) return;
  for (const ConfigNode::Entry& entry : map_->entries) {
    if (contains(read_, entry.key)) continue;
    if (contains(asked_, entry.key) && value_of(entry.key) == nullptr) continue;  // null counts as absent
    std::set<std::string> known(read_.begin(), read_.end());
    known.insert(asked_.begin(), asked_.end());
    known.erase(entry.key);  // has() was called for it, but it has no effect beside the other keys
    const std::vector<std::string> valid(known.begin(), known.end());
    throw ConfigError(entry.key_location,
                      fmt::format("unknown key '{}'{}{}", entry.key, what_.empty() ? "" : " of " + what_,
                                  nearest_and_valid(entry.key, valid)));
  }
}

SourceLocation ConfigReader::location_of(std::string_view key) const {
  const ConfigTree* found = map_->find(key);
  return found != nullptr && *found ? (*found)->location : map_->location;
}

void ConfigReader::fail(std::string_view key, const std::string& message) const {
  const std::string name = fmt::format("'{}'", key);
  const bool named = key.empty() || message.find(name) != std::string::npos;
  throw ConfigError(location_of(key), named ? message : name + ": " + message);
}

Seconds parse_time(std::string_view text, const std::string& origin) {
  ConfigNode node;
  node.kind = Kind::kScalar;
  node.location = SourceLocation{origin};
  node.scalar = text;
  double value = 0.0;
  const NumberFault fault = parse_with_unit(text, UnitKind::kTime, value);
  if (fault != NumberFault::kNone) {
    throw ConfigError(node.location, fmt::format("must be {}, got {}", expected_of(UnitKind::kTime), shown(node)));
  }
  if (value < 0.0) throw ConfigError(node.location, fmt::format("must not be negative, got {}", shown(node)));
  return Seconds(value);
}

}  // namespace roofcast
