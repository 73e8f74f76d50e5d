#pragma once
// Rejection sampling in speculative decoding, which preserves the target's distribution.

#include <algorithm>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/random.h"

namespace roofcast {

/// One token by rejection sampling: a token x drawn from the draft's p is accepted with min(1, q(x) / p(x)); otherwise
/// one is drawn from max(q - p, 0), normalized. Then P(x) = min(p, q) + (1 - sum min(p, q)) (q - p)+ / sum (q - p)+ =
/// q(x), because both remaining sums are equal: exactly the target's distribution. Source: Leviathan et al., 2023,
/// appendix A.1; Chen et al., 2023, arXiv:2302.01318, theorem 1.
inline std::vector<double> residual_distribution(std::span<const double> target, std::span<const double> draft) {
  SIM_CHECK(target.size() == draft.size(), "distributions over different vocabularies");
  std::vector<double> residual(target.size());
  double sum = 0;
  for (std::size_t x = 0; x < target.size(); ++x) sum += residual[x] = std::max(target[x] - draft[x], 0.0);
  for (double& r : residual) r = sum > 0 ? r / sum : 0.0;
  return residual;
}

/// Probability that the draft token is accepted: sum of min(p, q).
inline double acceptance_rate(std::span<const double> target, std::span<const double> draft) {
  SIM_CHECK(target.size() == draft.size(), "distributions over different vocabularies");
  double kept = 0;
  for (std::size_t x = 0; x < target.size(); ++x) kept += std::min(target[x], draft[x]);
  return kept;
}

inline std::vector<double> output_distribution(std::span<const double> target, std::span<const double> draft) {
  const double rejected = 1.0 - acceptance_rate(target, draft);
  std::vector<double> out = residual_distribution(target, draft);
  for (std::size_t x = 0; x < out.size(); ++x) out[x] = std::min(target[x], draft[x]) + rejected * out[x];
  return out;
}

inline int draw(std::span<const double> probabilities, Random& random) {
  double u = random.uniform();
  for (std::size_t x = 0; x + 1 < probabilities.size(); ++x) {
    if (u < probabilities[x]) return static_cast<int>(x);
    u -= probabilities[x];
  }
  return static_cast<int>(probabilities.size()) - 1;
}

struct SpeculativeSample {
  int token = 0;
  bool accepted = false;  ///< the draft's token
};

/// Draws one token by this algorithm.
inline SpeculativeSample sample_speculatively(std::span<const double> target, std::span<const double> draft,
                                              Random& random) {
  const int token = draw(draft, random);
  const auto x = static_cast<std::size_t>(token);
  if (random.uniform() * draft[x] < target[x]) return {token, true};
  return {draw(residual_distribution(target, draft), random), false};
}

}  // namespace roofcast
