// Steps as in prefill_first, with memory for the whole output reserved.
#include "sim/serve/scheduler.h"
#include "sim/serve/step_plan.h"

namespace roofcast {
namespace {

class PrefillNoEvict final : public Scheduler {
 public:
  void plan(StepPlan& step) override {
    step.prefill(step.budget(), StepPlan::WhenFull::kWait);
    if (!step.has_prefill()) step.decode();
  }
  std::optional<double> reserved_output(const EngineSpec&, bool) const override { return 1.0; }
};

}  // namespace

std::unique_ptr<Scheduler> make_prefill_no_evict() { return std::make_unique<PrefillNoEvict>(); }

}  // namespace roofcast
