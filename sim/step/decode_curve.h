#pragma once
// Decode attention as a function of the mean context: exact at knots, linear between them.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace roofcast {

/// Decode attention of one step at a knot, summed over layers.
struct DecodeKnot {
  double seconds = std::numeric_limits<double>::quiet_NaN();
  double flops = 0, bytes = 0, launches = 0;
};

/// The two knots around a context.
struct DecodeSegment {
  double low = 0, high = 0;
  std::size_t index = 0;  ///< index of the lower knot
};

/// Knots every 64 tokens up to 1024, then 16 per octave: a segment is never wider than a sixteenth of its context.
inline DecodeSegment decode_segment(double context) {
  if (context < 1024) {
    const auto index = static_cast<std::size_t>(std::max(context, 0.0) / 64);
    const auto i = static_cast<double>(index);
    return {i * 64, (i + 1) * 64, index};
  }
  // The start of the octave is the double with the same exponent. Written for speed: every decode step runs this.
  const std::uint64_t exponent = std::bit_cast<std::uint64_t>(context) >> 52;
  const double base = std::bit_cast<double>(exponent << 52), width = base / 16;
  const auto within = static_cast<std::size_t>((context - base) / width);
  const auto i = static_cast<double>(within);
  const auto octave = static_cast<std::size_t>(exponent - (1023 + 10));
  return {base + i * width, base + (i + 1) * width, 16 + 16 * octave + within};
}

class DecodeCurve {
 public:
  /// The value at knot `index`, priced by `price(context)` on first use.
  template <class Price>
  const DecodeKnot& at(std::size_t i, double context, const Price& price) {
    if (i >= knots_.size() || std::isnan(knots_[i].seconds)) add(i, context, price);
    return knots_[i];
  }

 private:
  template <class Price>
  [[gnu::noinline]] void add(std::size_t i, double context, const Price& price) {
    if (knots_.size() <= i) knots_.resize(i + 1 + i / 2);
    knots_[i] = price(context);
  }
  std::vector<DecodeKnot> knots_;
};

}  // namespace roofcast
