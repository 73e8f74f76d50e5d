#pragma once
// Decode attention against the mean context: exact at knots, linear between them.

#include <cmath>
#include <limits>
#include <vector>

namespace roofcast {

/// Attention of one decode step at a knot, summed over layers.
struct DecodeKnot {
  double seconds = std::numeric_limits<double>::quiet_NaN();
  double flops = 0, bytes = 0, launches = 0;
};

/// The two knots around a context.
struct DecodeSegment {
  double low = 0, high = 0;
  std::size_t index = 0;  ///< of the lower knot
};

/// Knots every 64 tokens up to 1024, then 16 an octave: a segment is never wider than a sixteenth of its context.
inline DecodeSegment decode_segment(double context) {
  if (context < 1024) {
    const double i = std::floor(std::max(context, 0.0) / 64);
    return {i * 64, (i + 1) * 64, static_cast<std::size_t>(i)};
  }
  const int octave = std::ilogb(context) - 10;
  const double base = std::ldexp(1024.0, octave), width = base / 16;
  const double i = std::floor((context - base) / width);
  return {base + i * width, base + (i + 1) * width,
          static_cast<std::size_t>(16 + 16 * octave) + static_cast<std::size_t>(i)};
}

class DecodeCurve {
 public:
  /// The value at a knot's context, priced by `price(context)` the first time.
  template <class Price>
  DecodeKnot at(double knot_context, const Price& price) {
    const std::size_t i = decode_segment(knot_context).index;
    if (knots_.size() <= i) knots_.resize(i + 1 + i / 2);
    if (std::isnan(knots_[i].seconds)) knots_[i] = price(knot_context);
    return knots_[i];
  }

 private:
  std::vector<DecodeKnot> knots_;
};

}  // namespace roofcast
