#pragma once
// Numbers with dimensions. A bandwidth added to a time does not compile.
// GB is 1e9 bytes, GiB is 2^30 bytes, everywhere.

#include <compare>

namespace roofcast {

/// A number with its dimension, seconds^S * bytes^B * flops^F, held in base units (s, B, FLOP).
template <int S, int B, int F>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double base_units) : base_(base_units) {}  // never implicit
  constexpr double base() const { return base_; }
  constexpr double in(Quantity unit) const { return base_ / unit.base_; }
  constexpr auto operator<=>(const Quantity&) const = default;

  constexpr Quantity& operator+=(Quantity o) {
    base_ += o.base_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    base_ -= o.base_;
    return *this;
  }
  constexpr Quantity& operator*=(double f) {
    base_ *= f;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, double f) { return a *= f; }
  friend constexpr Quantity operator*(double f, Quantity a) { return a *= f; }
  friend constexpr Quantity operator/(Quantity a, double f) { return Quantity(a.base_ / f); }

 private:
  double base_ = 0.0;  // exact for whole bytes up to 2^53, 9 PB
};

template <int S1, int B1, int F1, int S2, int B2, int F2>
constexpr auto operator/(Quantity<S1, B1, F1> a, Quantity<S2, B2, F2> b) {
  if constexpr (S1 == S2 && B1 == B2 && F1 == F2) {
    return a.base() / b.base();
  } else {
    return Quantity<S1 - S2, B1 - B2, F1 - F2>(a.base() / b.base());
  }
}
template <int S1, int B1, int F1, int S2, int B2, int F2>
constexpr auto operator*(Quantity<S1, B1, F1> a, Quantity<S2, B2, F2> b) {
  if constexpr (S1 + S2 == 0 && B1 + B2 == 0 && F1 + F2 == 0) {
    return a.base() * b.base();
  } else {
    return Quantity<S1 + S2, B1 + B2, F1 + F2>(a.base() * b.base());
  }
}

using Seconds = Quantity<1, 0, 0>;
using PerSecond = Quantity<-1, 0, 0>;
using Bytes = Quantity<0, 1, 0>;
using Flops = Quantity<0, 0, 1>;  ///< operations, not a rate
using BytesPerSecond = Quantity<-1, 1, 0>;
using FlopsPerSecond = Quantity<-1, 0, 1>;
using FlopsPerByte = Quantity<0, -1, 1>;

inline constexpr Seconds kSecond{1.0}, kMillisecond{1e-3}, kMicrosecond{1e-6}, kHour{3600.0};
inline constexpr Bytes kByte{1.0}, kGigabyte{1e9}, kGibibyte{1073741824.0}, kMebibyte{1048576.0};
inline constexpr BytesPerSecond kGigabytePerSecond{1e9};
inline constexpr FlopsPerSecond kTeraflopPerSecond{1e12};

/// Small types for quantities other than time, bytes and work.
struct Watts {
  double value = 0.0;
  constexpr auto operator<=>(const Watts&) const = default;
};
struct Joules {
  double value = 0.0;
  constexpr auto operator<=>(const Joules&) const = default;
};
struct UsdPerHour {
  double value = 0.0;
  constexpr auto operator<=>(const UsdPerHour&) const = default;
};
constexpr Joules operator*(Watts p, Seconds t) { return Joules{p.value * t.base()}; }

}  // namespace roofcast
