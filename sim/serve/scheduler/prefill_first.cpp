// SGLang: steps with prompts only whenever there are any, else all decoding sequences.
#include <algorithm>

#include "sim/serve/scheduler.h"
#include "sim/serve/step_plan.h"

namespace roofcast {
namespace {

class PrefillFirst final : public Scheduler {
 public:
  void plan(StepPlan& step) override {
    step.prefill(step.budget(), StepPlan::WhenFull::kWait);
    if (!step.has_prefill()) step.decode();
  }
  /// A request that was preempted once reserves all of its output.
  std::optional<double> reserved_output(const EngineSpec& engine, bool was_preempted) const override {
    return was_preempted ? 1.0 : engine.reserve_output_ratio;
  }
  /// The prefix tree keeps only the prompt. Source: SGLang, managers/schedule_batch.py (release_req).
  std::int64_t found_again(std::int64_t tokens, int prompt) const override {
    return std::min<std::int64_t>(tokens, prompt);
  }
};

}  // namespace

std::unique_ptr<Scheduler> make_prefill_first() { return std::make_unique<PrefillFirst>(); }

}  // namespace roofcast
