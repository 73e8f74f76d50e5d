// TensorRT-LLM, in-flight batching: steps as in decode_first, with memory for the whole output reserved.
#include "sim/serve/scheduler.h"
#include "sim/serve/step_plan.h"

namespace roofcast {
namespace {

class NoEvict final : public Scheduler {
 public:
  void plan(StepPlan& step) override {
    step.decode();
    step.prefill(step.budget() - step.decode_tokens(), StepPlan::WhenFull::kPreempt);
  }
  std::optional<double> reserved_output(const EngineSpec&, bool) const override { return 1.0; }
};

}  // namespace

std::unique_ptr<Scheduler> make_no_evict() { return std::make_unique<NoEvict>(); }

}  // namespace roofcast
