#pragma once
#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>

#include "base/error.h"
#include "base/units.h"

namespace roofcast {

/// Simulated time in whole picoseconds, so that equal times compare equal. Covers up to 100 days; sums and products
/// beyond 2^63 ps saturate to "never".
class SimTime {
 public:
  static constexpr double kPerSecond = 1e12;
  static constexpr double kLongest = 9e6;  ///< seconds; 2^63 ps are 9.2e6 s

  constexpr SimTime() = default;
  constexpr explicit SimTime(std::int64_t picoseconds) : ps_(picoseconds) {}
  static SimTime of(Seconds s) {
    if (!(s.base() < kLongest)) pass_longest();
    return SimTime(nearest(s.base() * kPerSecond));
  }
  /// Throws like of() if sums have carried the time of an event beyond kLongest.
  void require() const {
    if (ps_ >= static_cast<std::int64_t>(kLongest * kPerSecond)) pass_longest();
  }
  constexpr std::int64_t picoseconds() const { return ps_; }
  constexpr Seconds seconds() const { return Seconds(static_cast<double>(ps_) / kPerSecond); }
  constexpr double milliseconds() const { return static_cast<double>(ps_) * 1e-9; }
  constexpr auto operator<=>(const SimTime&) const = default;
  constexpr SimTime& operator+=(SimTime o) { return *this = *this + o; }
  friend constexpr SimTime operator+(SimTime a, SimTime b) {
    std::int64_t sum = 0;
    return SimTime(__builtin_add_overflow(a.ps_, b.ps_, &sum) ? kNever : sum);
  }
  friend constexpr SimTime operator-(SimTime a, SimTime b) { return SimTime(a.ps_ - b.ps_); }
  friend constexpr SimTime operator*(std::int64_t n, SimTime t) {
    std::int64_t product = 0;
    return SimTime(__builtin_mul_overflow(n, t.ps_, &product) ? kNever : product);
  }

 private:
  /// std::llround for |x| < 2^63, without the call.
  static constexpr std::int64_t nearest(double x) {
    const auto whole = static_cast<std::int64_t>(x);
    const double rest = x - static_cast<double>(whole);
    return whole + (rest >= 0.5 ? 1 : 0) - (rest <= -0.5 ? 1 : 0);
  }
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  [[noreturn]] static void pass_longest() {
    throw ConfigError("the simulated time passes 100 days: raise the rate or send fewer requests");
  }

  std::int64_t ps_ = 0;
};

}  // namespace roofcast
