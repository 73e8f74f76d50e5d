#pragma once
// Which requests run in the next step, by the rules of each engine. To add a scheduler, see
// docs/extending/scheduler.md.

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace roofcast {

class StepPlan;
struct EngineSpec;

/// Everything in which the engines' schedulers differ. Each rank has its own scheduler, which may keep state.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  /// Chooses who runs in the next step, by calling StepPlan::decode() and StepPlan::prefill().
  virtual void plan(StepPlan& step) = 0;

  /// The fraction of its output for which a request must find memory before it starts. Empty: nothing is reserved.
  virtual std::optional<double> reserved_output(const EngineSpec&, bool /*was_preempted*/) const {
    return std::nullopt;
  }
  /// Prompt tokens per step if prompts are not chunked. Longer prompts are refused.
  virtual std::int64_t uncut_tokens(std::int64_t budget) const { return budget; }
  /// Tokens that the prefix cache keeps of a sequence that is preempted at `tokens` tokens.
  virtual std::int64_t found_again(std::int64_t tokens, int /*prompt*/) const { return tokens; }

  /// Decode steps without prefill are simulated as one event while the plan stays the same. The caller handles
  /// sequences that end, memory that runs out and held prompts. Returns the number of steps with the same plan, this
  /// one included, if no request arrives.
  virtual std::int64_t steady_steps(const StepPlan&) const { return std::numeric_limits<std::int64_t>::max(); }
  /// Whether a request that arrives between such steps could change the plan.
  virtual bool arrival_matters(const StepPlan& step) const;

  /// Whether a batch is one padded tensor: every row is as long as the longest, finished sequences stay in the decode
  /// steps and keep their memory, and no answer is sent until all sequences have finished.
  virtual bool pads() const { return false; }
  /// Whether requests join and leave a running batch at any step. False: the next batch starts when this one ends.
  virtual bool continuous() const { return true; }
};

struct SchedulerKind {
  std::string_view name, help;
  std::unique_ptr<Scheduler> (*make)();
};

std::span<const SchedulerKind> schedulers();
std::unique_ptr<Scheduler> make_scheduler(const std::string& name);  ///< throws ConfigError for an unknown name
/// `name` if that scheduler batches continuously, else the default scheduler.
std::string continuous_scheduler(const std::string& name);

}  // namespace roofcast
