#include "base/random.h"

#include <bit>
#include <cmath>

#include "base/error.h"

namespace roofcast {
namespace {

/// splitmix64 (Steele, Lea and Flood 2014): advances `state` and returns the mixed value.
std::uint64_t splitmix(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

Random::Random(std::uint64_t seed) {
  for (std::uint64_t& word : state_) word = splitmix(seed);
}

Random Random::fork(std::uint64_t stream) const {
  // The whole state and the stream number are mixed, so that neighbouring streams are unrelated.
  std::uint64_t mixed = stream;
  for (const std::uint64_t word : state_) mixed = splitmix(mixed) ^ word;
  return Random(splitmix(mixed));
}

std::uint64_t Random::bits() {
  const std::uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Random::uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }

std::int64_t Random::uniform_integer(std::int64_t low, std::int64_t high) {
  SIM_CHECK(low <= high, "a range of integers must not be empty");
  const std::uint64_t last = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  if (last == ~std::uint64_t{0}) return static_cast<std::int64_t>(bits());
  const std::uint64_t count = last + 1;
  const std::uint64_t biased = (~std::uint64_t{0} - count + 1) % count;  // 2^64 mod count draws are rejected
  std::uint64_t drawn = bits();
  while (drawn < biased) drawn = bits();
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + drawn % count);
}

double Random::exponential(double mean) { return -mean * std::log1p(-uniform()); }

double Random::normal() {
  while (true) {
    const double x = 2.0 * uniform() - 1.0;
    const double y = 2.0 * uniform() - 1.0;
    const double square = x * x + y * y;
    if (square > 0.0 && square < 1.0) return x * std::sqrt(-2.0 * std::log(square) / square);
  }
}

double Random::lognormal(double mu, double sigma) { return std::exp(mu + sigma * normal()); }

double Random::gamma(double shape, double scale) {
  SIM_CHECK(shape > 0.0 && scale >= 0.0, "a gamma distribution needs a positive shape");
  if (shape < 1.0) {
    // Gamma(a) = Gamma(a + 1) * U^(1/a), with U in (0, 1].
    const double power = std::pow(1.0 - uniform(), 1.0 / shape);
    return gamma(shape + 1.0, scale) * power;
  }
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  while (true) {
    const double x = normal();
    const double root = 1.0 + c * x;
    if (root <= 0.0) continue;
    const double v = root * root * root;
    if (std::log1p(-uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v * scale;
  }
}

}  // namespace roofcast
