#pragma once
#include <array>
#include <cstdint>

namespace roofcast {

/// xoshiro256++ (Blackman and Vigna 2019, public domain), seeded by splitmix64. A seed gives the same numbers on every
/// platform, because the distributions are implemented here and not taken from the standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed);
  Random fork(std::uint64_t stream) const;  ///< an independent generator, for example one per client

  std::uint64_t bits();
  double uniform();                                                   ///< [0, 1), 53 bits
  std::int64_t uniform_integer(std::int64_t low, std::int64_t high);  ///< inclusive, unbiased
  double exponential(double mean);
  double normal();  ///< Marsaglia's polar method; keeps no state between calls
  double lognormal(double mu, double sigma);
  double gamma(double shape, double scale);  ///< Marsaglia and Tsang 2000

 private:
  std::array<std::uint64_t, 4> state_;
};

}  // namespace roofcast
