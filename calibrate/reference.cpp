#include "calibrate/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "calibrate/random_data.h"

namespace roofcast::calibrate {

double reference_dot(std::size_t k, const Element& a, const Element& b) {
  double sum = 0;
  for (std::size_t i = 0; i < k; ++i) sum += a(i) * b(i);
  return sum;
}

std::vector<double> reference_attention(std::size_t d, std::size_t length, const Element& q, const Element& k,
                                        const Element& v) {
  std::vector<double> query(d), out(d, 0.0), score(length);
  for (std::size_t i = 0; i < d; ++i) query[i] = q(i);
  for (std::size_t t = 0; t < length; ++t) {
    double sum = 0;
    for (std::size_t i = 0; i < d; ++i) sum += query[i] * k(t * d + i);
    score[t] = sum / std::sqrt(static_cast<double>(d));
  }
  const double highest = *std::max_element(score.begin(), score.end());
  double total = 0;
  for (std::size_t t = 0; t < length; ++t) {
    const double weight = std::exp(score[t] - highest);
    total += weight;
    for (std::size_t i = 0; i < d; ++i) out[i] += weight * v(t * d + i);
  }
  for (double& value : out) value /= total;
  return out;
}

std::vector<double> reference_rmsnorm(std::span<const double> x, std::span<const double> w, double epsilon) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  const double scale = 1.0 / std::sqrt(sum / static_cast<double>(x.size()) + epsilon);
  std::vector<double> out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = x[i] * scale * w[i];
  return out;
}

std::vector<double> reference_rope(std::span<const double> x, double position, double base) {
  const std::size_t half = x.size() / 2;
  std::vector<double> out(x.size());
  for (std::size_t i = 0; i < half; ++i) {
    const double angle = position * std::pow(base, -static_cast<double>(i) / static_cast<double>(half));
    out[i] = x[i] * std::cos(angle) - x[i + half] * std::sin(angle);
    out[i + half] = x[i + half] * std::cos(angle) + x[i] * std::sin(angle);
  }
  return out;
}

double reference_silu(double x) { return x / (1.0 + std::exp(-x)); }

double bf16_value(std::uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
}

double half_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const double sign = (bits & 0x8000) ? -1.0 : 1.0;
  if (exponent == 31) return mantissa ? std::nan("") : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24));
}

std::string differs(std::span<const double> got, std::span<const double> want, double relative, int mantissa_bits) {
  if (got.size() != want.size()) return fmt::format("{} elements, expected {}", got.size(), want.size());
  double squares = 0;
  for (const double value : want) squares += value * value;
  const double scale = std::sqrt(squares / static_cast<double>(std::max<std::size_t>(want.size(), 1)));
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double allowed = relative * scale + std::abs(want[i]) * std::ldexp(1.0, -mantissa_bits);
    if (!(std::abs(got[i] - want[i]) <= allowed))
      return fmt::format("element {} of the sample is {:.6g}, expected {:.6g} within {:.2g}", i, got[i], want[i],
                         allowed);
  }
  return "";
}

std::vector<std::uint64_t> sample_places(std::uint64_t size, std::size_t count, std::uint32_t seed) {
  std::vector<std::uint64_t> places;
  if (size == 0) return places;
  if (size <= count) {
    for (std::uint64_t i = 0; i < size; ++i) places.push_back(i);
    return places;
  }
  places = {0, size - 1};
  for (std::size_t i = 2; i < count; ++i) {
    const std::uint64_t bits =
        (static_cast<std::uint64_t>(random_bits(seed, 2 * i)) << 32) | random_bits(seed, 2 * i + 1);
    places.push_back(bits % size);
  }
  return places;
}

}  // namespace roofcast::calibrate
