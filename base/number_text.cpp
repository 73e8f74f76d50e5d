#include "base/number_text.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <span>

#include "base/error.h"
#include "base/from_chars.h"
#include "base/text.h"

namespace roofcast {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t digits_from(std::string_view text, std::size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

/// Length of the number at the beginning of the text, 0 if there is none.
std::size_t number_length(std::string_view text) {
  std::size_t at = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  const std::size_t whole = at;
  at = digits_from(text, at);
  std::size_t digits = at - whole;
  if (digits > 1 && text[whole] == '0') return 0;  // some readers take 010 for octal
  if (at < text.size() && text[at] == '.') {
    const std::size_t end = digits_from(text, at + 1);
    digits += end - at - 1;
    at = end;
  }
  if (digits == 0) return 0;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    const bool sign = at + 1 < text.size() && (text[at + 1] == '-' || text[at + 1] == '+');
    const std::size_t first = at + (sign ? 2 : 1);
    const std::size_t end = digits_from(text, first);
    if (end > first) at = end;
  }
  return at;
}

/// `factor` multiplies, or divides where only the divisor is exact: 4.5 us is 4.5 / 1e6.
struct Unit {
  std::string_view name;
  double factor;
  bool divides = false;
};

constexpr Unit kTimes[] = {{"s", 1.0},        {"ms", 1e3, true}, {"us", 1e6, true},
                           {"ns", 1e9, true}, {"min", 60.0},     {"h", 3600.0}};
constexpr Unit kBytesUnits[] = {
    {"GB", 1e9},        {"GiB", 1073741824.0}, {"TB", 1e12}, {"TiB", 1099511627776.0}, {"MB", 1e6},
    {"MiB", 1048576.0}, {"kB", 1e3},           {"KB", 1e3},  {"KiB", 1024.0},          {"B", 1.0}};
constexpr Unit kBits[] = {{"Gb", 1e9 / 8}, {"Tb", 1e12 / 8}, {"Mb", 1e6 / 8}, {"kb", 1e3 / 8}, {"Kb", 1e3 / 8}};
constexpr Unit kFlopRates[] = {
    {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}, {"GFLOP/s", 1e9}, {"MFLOP/s", 1e6}, {"FLOP/s", 1.0}};
constexpr Unit kPowers[] = {{"W", 1.0}, {"kW", 1e3}};
constexpr Unit kPrices[] = {{"USD/h", 1.0}};
constexpr Unit kClocks[] = {{"MHz", 1e6}, {"GHz", 1e9}};
constexpr Unit kRates[] = {{"/s", 1.0}, {"/min", 60.0, true}, {"/h", 3600.0, true}};

const Unit* find_unit(std::span<const Unit> units, std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

const Unit* find_bandwidth(std::string_view name) {
  if (!name.ends_with("/s")) return nullptr;
  name.remove_suffix(2);
  const Unit* unit = find_unit(kBytesUnits, name);
  return unit != nullptr ? unit : find_unit(kBits, name);
}

const Unit* find_unit(UnitKind kind, std::string_view name) {
  switch (kind) {
    case UnitKind::kTime:
      return find_unit(kTimes, name);
    case UnitKind::kBytes:
      return find_unit(kBytesUnits, name);
    case UnitKind::kBandwidth:
      return find_bandwidth(name);
    case UnitKind::kFlopRate:
      return find_unit(kFlopRates, name);
    case UnitKind::kPower:
      return find_unit(kPowers, name);
    case UnitKind::kPrice:
      return find_unit(kPrices, name);
    case UnitKind::kRate:
      return find_unit(kRates, name);
    case UnitKind::kClock:
      return find_unit(kClocks, name);
  }
  return nullptr;
}

}  // namespace

NumberFault parse_number(std::string_view text, double& value) {
  if (text.empty() || number_length(text) != text.size()) return NumberFault::kMalformed;
  if (text[0] == '+') text.remove_prefix(1);  // from_chars does not accept a plus sign
  const auto [end, error] = from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return NumberFault::kOutOfRange;
  return error == std::errc() && end == text.data() + text.size() ? NumberFault::kNone : NumberFault::kMalformed;
}

NumberFault parse_integer(std::string_view text, std::int64_t& value) {
  if (text.empty() || number_length(text) != text.size()) return NumberFault::kMalformed;
  if (text[0] == '+') text.remove_prefix(1);
  const std::size_t point = text.find('.');
  if (point != std::string_view::npos) {
    if (text.find_first_not_of('0', point + 1) != std::string_view::npos) return NumberFault::kMalformed;
    text = text.substr(0, point);
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return NumberFault::kOutOfRange;
  return error == std::errc() && end == text.data() + text.size() ? NumberFault::kNone : NumberFault::kMalformed;
}

NumberFault parse_with_unit(std::string_view text, UnitKind kind, double& value) {
  text = trim(text);
  const std::size_t length = number_length(text);
  if (length == 0) return NumberFault::kMalformed;
  const Unit* unit = find_unit(kind, trim(text.substr(length)));
  if (unit == nullptr) return NumberFault::kMalformed;
  const NumberFault fault = parse_number(text.substr(0, length), value);
  if (fault != NumberFault::kNone) return fault;
  value = unit->divides ? value / unit->factor : value * unit->factor;
  return std::isfinite(value) ? NumberFault::kNone : NumberFault::kOutOfRange;
}

const char* expected_of(UnitKind kind) {
  switch (kind) {
    case UnitKind::kTime:
      return "a time such as '4.5 us'";
    case UnitKind::kBytes:
      return "a number of bytes such as '80 GiB'";
    case UnitKind::kBandwidth:
      return "a bandwidth such as '3.35 TB/s'";
    case UnitKind::kFlopRate:
      return "a rate of operations such as '989 TFLOP/s'";
    case UnitKind::kPower:
      return "a power such as '700 W'";
    case UnitKind::kPrice:
      return "a price such as '2.49 USD/h'";
    case UnitKind::kRate:
      return "a rate such as '6 /s'";
    case UnitKind::kClock:
      return "a clock such as '1980 MHz'";
  }
  SIM_CHECK(false, "unknown kind of unit");
}

}  // namespace roofcast
