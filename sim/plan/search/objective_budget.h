#pragma once
// Whether the objectives of a run can still be met.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/plan/objectives.h"
#include "sim/serve/observer.h"

namespace roofcast {

/// How many requests of a run may miss each objective.
class ObjectiveBudgets {
 public:
  /// For at most `requests` counted requests, also by kind of client. `certain`: the upper ends of the confidence
  /// intervals must meet the limits too.
  ObjectiveBudgets(const std::vector<Objective>& objectives, double requests, bool certain,
                   const std::vector<std::int64_t>& by_client = {});

  void add(const RequestRecord& request);
  /// Whether a mean or percentile must exceed its limit whatever the remaining requests do.
  bool spent() const {
    return std::any_of(budgets_.begin(), budgets_.end(), [](const Budget& b) { return b.spent(); });
  }

 private:
  struct Budget {
    Objective objective;
    double allowed;            ///< mean: sum of value / limit; percentile: requests above the limit
    double sum = 0, over = 0;  ///< so far
    bool spent() const { return (objective.percentile < 0 ? sum : over) > allowed; }
  };
  std::vector<Budget> budgets_;
};

}  // namespace roofcast
