#pragma once
// Whether the objectives of a run can still be met.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/plan/objectives.h"
#include "sim/serve/observer.h"

namespace roofcast {

/// What the objectives allow the requests of a run to miss.
class ObjectiveBudgets {
 public:
  /// Of `requests` that are counted, at most so many of them by each kind of clients. `certain`: the upper ends of the
  /// intervals must meet the limits, too.
  ObjectiveBudgets(const std::vector<Objective>& objectives, double requests, bool certain,
                   const std::vector<std::int64_t>& by_client = {});

  void add(const RequestRecord& request);
  /// Some mean of all requests is above its limit already, or so many are that a percentile is, whatever the others do.
  bool spent() const {
    return std::any_of(budgets_.begin(), budgets_.end(), [](const Budget& b) { return b.spent(); });
  }

 private:
  struct Budget {
    Objective objective;
    double allowed;            ///< of a mean the sum of value / limit; else requests above the limit
    double sum = 0, over = 0;  ///< of those so far
    bool spent() const { return (objective.percentile < 0 ? sum : over) > allowed; }
  };
  std::vector<Budget> budgets_;
};

}  // namespace roofcast
