#pragma once
// Parses numbers with and without units, whatever the locale.

#include <cstdint>
#include <string_view>

namespace roofcast {

enum class NumberFault { kNone, kMalformed, kOutOfRange };

/// The whole text must be a plain decimal or scientific number: 8, -0.5, 1e9; not 010, 0x8, 1_000, nan, inf, 8GB.
NumberFault parse_number(std::string_view text, double& value);
/// Digits with an optional sign. Accepts `131072.0`, but neither `1e6` nor `2.5`.
NumberFault parse_integer(std::string_view text, std::int64_t& value);

enum class UnitKind : int { kTime, kBytes, kBandwidth, kFlopRate, kPower, kPrice, kRate, kClock };

/// "3.35 TB/s" in base units (s, B, B/s, FLOP/s, W, USD/h, 1/s, 1/s). A missing unit or one of another kind is
/// malformed.
NumberFault parse_with_unit(std::string_view text, UnitKind kind, double& value);
const char* expected_of(UnitKind kind);  ///< "a bandwidth such as '3.35 TB/s'"

}  // namespace roofcast
