#include "sim/serve/step_pricer.h"

namespace roofcast {
namespace {

class ModelPricer final : public StepPricer {
 public:
  explicit ModelPricer(std::shared_ptr<const Deployment> deployment) : model_(std::move(deployment)) {}
  StepCost cost(const StepBatch& batch) override { return model_.cost(batch); }
  StepCost decode_run(const StepBatch& first, std::int64_t steps) override { return model_.decode_run(first, steps); }
  Seconds run_time(const StepBatch& first, std::int64_t steps) override { return model_.run_time(first, steps); }
  std::int64_t steps_within(const StepBatch& first, Seconds budget, std::int64_t limit) override {
    return model_.steps_within(first, budget, limit);
  }

 private:
  StepModel model_;
};

}  // namespace

std::unique_ptr<StepPricer> make_model_pricer(std::shared_ptr<const Deployment> deployment) {
  return std::make_unique<ModelPricer>(std::move(deployment));
}

}  // namespace roofcast
