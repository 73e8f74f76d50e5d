// vLLM V1: all decoding sequences, then prefill chunks within the rest of the token budget. A preempted sequence reuses
// its blocks that were not evicted. Source: v1/core/sched/scheduler.py (_preempt_request), kv_cache_manager.py
// (get_computed_blocks).
#include "sim/serve/scheduler.h"
#include "sim/serve/step_plan.h"

namespace roofcast {
namespace {

class DecodeFirst final : public Scheduler {
 public:
  void plan(StepPlan& step) override {
    step.decode();
    step.prefill(step.budget() - step.decode_tokens(), StepPlan::WhenFull::kPreempt);
  }
};

}  // namespace

std::unique_ptr<Scheduler> make_decode_first() { return std::make_unique<DecodeFirst>(); }

}  // namespace roofcast
