// SGLang with --enable-mixed-chunk: steps as in decode_first, with a share of the output reserved.
#include "sim/serve/scheduler.h"
#include "sim/serve/step_plan.h"

namespace roofcast {
namespace {

class MixedChunk final : public Scheduler {
 public:
  void plan(StepPlan& step) override {
    step.decode();
    step.prefill(step.budget() - step.decode_tokens(), StepPlan::WhenFull::kPreempt);
  }
  /// A request that was preempted once reserves all of its output.
  std::optional<double> reserved_output(const EngineSpec& engine, bool was_preempted) const override {
    return was_preempted ? 1.0 : engine.reserve_output_ratio;
  }
};

}  // namespace

std::unique_ptr<Scheduler> make_mixed_chunk() { return std::make_unique<MixedChunk>(); }

}  // namespace roofcast
