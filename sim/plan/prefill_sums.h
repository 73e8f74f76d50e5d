#pragma once
// Remembers the sum of the first prefill steps of a batch, from which a larger batch of the same prompts continues.

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "sim/plan/estimate.h"

namespace roofcast {

/// Some of the prefill steps of a batch, and their sum.
struct PrefillSum {
  StepBreakdown sum;
  double steps = 0;
  std::int64_t done = 0;  ///< prompt tokens of a rank
};

/// For one StepModel. Not thread-safe.
class PrefillSums {
 public:
  /// What the first steps depend on: the tokens of a prompt, the ranks that have prompts, and the tokens of a step.
  using Prompts = std::tuple<int, int, std::int64_t>;

  /// The longest sum of at most `most` tokens; an empty one if there is none.
  PrefillSum longest(const Prompts& prompts, std::int64_t most) const;
  /// Keeps `sum` in place of the one that it continued, which had `from` tokens.
  void keep(const Prompts& prompts, std::int64_t from, const PrefillSum& sum);
  std::size_t size() const { return size_; }

 private:
  std::map<Prompts, std::vector<PrefillSum>> sums_;
  std::size_t size_ = 0;
};

/// estimate() that starts from the sums of earlier estimates. The result is the same to the last bit.
Estimate estimate(StepModel& model, const EstimateRequest& request, PrefillSums& sums);

}  // namespace roofcast
