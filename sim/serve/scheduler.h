#pragma once
// Which requests run in the next step, by the rules of the engines. docs/extending/scheduler.md says how to add a
// scheduler.

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

/// Everything in which the engines' schedulers differ. Every replica has a scheduler of its own, which may keep state.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  /// Chooses who runs in the next step, by calling StepPlan::decode() and StepPlan::prefill().
  virtual void plan(StepPlan& step) = 0;

  /// The share of its output for which a request must find room before it starts; empty: no room is reserved.
  virtual std::optional<double> reserved_output(const EngineSpec&, bool /*was_preempted*/) const {
    return std::nullopt;
  }
  /// Prompt tokens per step if prompts are not cut into chunks. A longer prompt is refused.
  virtual std::int64_t uncut_tokens(std::int64_t budget) const { return budget; }
  /// Tokens that the prefix cache keeps of a sequence preempted at `tokens`.
  virtual std::int64_t found_again(std::int64_t tokens, int /*prompt*/) const { return tokens; }

  /// Decode steps without prefill are simulated as one event while the plan stays the same. Sequences that end, memory
  /// that runs out and prompts that settings hold back are handled elsewhere. Returns the number of such steps, this
  /// one included, if no request arrives.
  virtual std::int64_t steady_steps(const StepPlan&) const { return std::numeric_limits<std::int64_t>::max(); }
  /// Whether a request that arrives between such steps could change the plan.
  virtual bool arrival_matters(const StepPlan& step) const;

  /// A batch is one padded tensor: every row is as long as the longest, ended sequences still take part in decode steps
  /// and keep their room, and no answer leaves until all have ended.
  virtual bool pads() const { return false; }
  /// Requests join and leave a running batch at any step; false: the next batch starts when this one ends.
  virtual bool continuous() const { return true; }
};

struct SchedulerKind {
  std::string_view name, help;
  std::unique_ptr<Scheduler> (*make)();
};

std::span<const SchedulerKind> schedulers();
std::unique_ptr<Scheduler> make_scheduler(const std::string& name);  ///< throws ConfigError for an unknown name
/// The scheduler itself if it batches continuously, else the default one.
std::string continuous_scheduler(const std::string& name);

}  // namespace roofcast
