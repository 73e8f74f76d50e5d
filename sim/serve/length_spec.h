#pragma once
// How long prompts and outputs are.

#include <optional>
#include <variant>
#include <vector>

#include "base/config_reader.h"
#include "base/random.h"

namespace roofcast {

/// Tokens of a prompt or an output. A lognormal is rounded, and what falls outside [min, max] counts as
/// min or max, as a context window cuts prompts: its median stays exp(mu).
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
  int extra = 0;  ///< further tokens, from pictures and sounds

  int draw(Random& random) const;
  double mean() const;  ///< exact, truncation included
  int longest() const;
  int shortest() const;
  std::optional<int> constant() const;  ///< the length, if the distribution has only one
};
/// Bounds for the parameters of a distribution.
struct LengthLimits {
  int longest = 10'000'000;   ///< no context window is longer, by far; keeps sums of lengths in an int
  int default_max = 1 << 20;  ///< `max` of a lognormal that has none: the longest context windows served today
};
/// `distribution: fixed {value} | uniform {min, max} | lognormal {mean, p50 | mean, cv | mu, sigma; min, max} |
/// empirical {file, column}`. `mean` is the mean of what is drawn, the cut at min and max included.
LengthSpec parse_length(ConfigReader in, const LengthLimits& limits = {});

}  // namespace roofcast
