#pragma once
// Distributions of prompt and output lengths.

#include <optional>
#include <variant>
#include <vector>

#include "base/config_reader.h"
#include "base/random.h"

namespace roofcast {

/// Tokens of a prompt or an output. A lognormal is rounded, and values outside [min, max] count as min or max, because
/// a context window truncates prompts. Its median therefore stays exp(mu).
struct LengthSpec {
  struct Fixed {
    int value;
  };
  struct Uniform {
    int min, max;
  };
  struct Lognormal {
    double mu, sigma;
    int min, max;
  };
  struct Empirical {
    std::vector<int> values;
  };
  std::variant<Fixed, Uniform, Lognormal, Empirical> law = Fixed{1};
  int extra = 0;  ///< additional tokens from images and audio

  int draw(Random& random) const;
  double mean() const;  ///< exact, truncation included
  int longest() const;
  int shortest() const;
  std::optional<int> constant() const;  ///< the length, if the distribution has only one
};
/// Bounds on the parameters of a distribution.
struct LengthLimits {
  int longest = 10'000'000;   ///< far beyond any context window; keeps sums of lengths in an int
  int default_max = 1 << 20;  ///< default `max` of a lognormal: the longest context windows served today
};
/// `distribution: fixed {value} | uniform {min, max} | lognormal {mean, p50 | mean, cv | mu, sigma; min, max} |
/// empirical {file, column}`. `mean` is the mean after clamping to [min, max]. Throws ConfigError.
LengthSpec parse_length(ConfigReader in, const LengthLimits& limits = {});

}  // namespace roofcast
