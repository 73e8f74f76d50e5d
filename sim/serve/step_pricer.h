#pragma once
// The interface from the simulation to sim/step. It is called once per event, not per token, so virtual calls are
// cheap.

#include <functional>
#include <memory>

#include "sim/step/step_model.h"

namespace roofcast {

class StepPricer {
 public:
  virtual ~StepPricer() = default;
  virtual StepCost cost(const StepBatch& batch) = 0;
  /// See StepModel: the cost of `steps` decode steps, their time alone, and the largest n whose first n - 1 steps end
  /// before the budget.
  virtual StepCost decode_run(const StepBatch& first, std::int64_t steps) = 0;
  virtual Seconds run_time(const StepBatch& first, std::int64_t steps) { return decode_run(first, steps).time; }
  virtual std::int64_t steps_within(const StepBatch& first, Seconds budget, std::int64_t limit) = 0;
};

/// Prices with a StepModel of the deployment.
std::unique_ptr<StepPricer> make_model_pricer(std::shared_ptr<const Deployment> deployment);

using PricerFactory = std::function<std::unique_ptr<StepPricer>(std::shared_ptr<const Deployment>)>;

}  // namespace roofcast
