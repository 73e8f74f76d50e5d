#pragma once
#include "sim/serve/step_pricer.h"

namespace roofcast {

/// Forwards to a pricer that outlives the simulation.
class SharedPricer final : public StepPricer {
 public:
  explicit SharedPricer(StepPricer& pricer) : pricer_(pricer) {}
  StepCost cost(const StepBatch& batch) override { return pricer_.cost(batch); }
  StepCost decode_run(const StepBatch& first, std::int64_t steps) override { return pricer_.decode_run(first, steps); }
  std::int64_t steps_within(const StepBatch& first, Seconds budget, std::int64_t limit) override {
    return pricer_.steps_within(first, budget, limit);
  }

 private:
  StepPricer& pricer_;
};

}  // namespace roofcast
