// Static batching: requests wait until a batch is full, or for a maximum time. The batch is a padded tensor that runs
// until its last sequence has ended, and then answers all requests together.
#include <algorithm>
#include <limits>

#include "sim/serve/scheduler.h"
#include "sim/serve/step_plan.h"

namespace roofcast {
namespace {

class StaticBatch final : public Scheduler {
 public:
  void plan(StepPlan& step) override {
    if (step.running() == 0) {
      if (step.waits_for_batch()) return;
      step.admit_all(step.budget());
    } else {
      step.continue_prefills(step.budget(), StepPlan::WhenFull::kWait);
    }
    if (!step.has_prefill()) step.decode();
  }
  std::optional<double> reserved_output(const EngineSpec&, bool) const override { return 1.0; }
  /// All prompts of a batch run in one step, whatever their length.
  std::int64_t uncut_tokens(std::int64_t) const override { return std::numeric_limits<std::int64_t>::max(); }
  std::int64_t found_again(std::int64_t tokens, int prompt) const override {
    return std::min<std::int64_t>(tokens, prompt);
  }
  bool arrival_matters(const StepPlan&) const override { return false; }
  bool pads() const override { return true; }
  bool continuous() const override { return false; }
};

}  // namespace

std::unique_ptr<Scheduler> make_static_batch() { return std::make_unique<StaticBatch>(); }

}  // namespace roofcast
