#pragma once
// Balances prefill over attention-DP ranks. Source: TensorRT-LLM, py_executor.py (_balance_adp_requests).

#include <cstdint>
#include <span>

namespace roofcast {

struct Deployment;

/// What a rank could run in the next step.
struct RankWork {
  bool decodes = false;
  bool prompt = false;  ///< a prompt is running, or one waits and could be admitted
};

/// While every rank decodes, prompts are held until every rank has one that could run, because a rank without a prompt
/// would only wait for the others. Once every rank has one, prompts are held for some more steps, so that every rank
/// gathers several. After a maximum number of steps prompts run in any case.
class RankBalance {
 public:
  /// `continuous`: the scheduler uses continuous batching.
  RankBalance(const Deployment& deployment, bool continuous);

  bool active() const { return active_; }
  /// Whether prompts are held in the step being planned. Call once per step.
  bool holds(std::span<const RankWork> ranks);
  /// For how many steps prompts stay held if nothing changes.
  std::int64_t steps_until_release() const;
  /// The planned step has run `steps` times.
  void advance(std::int64_t steps);

 private:
  enum class Waits { kForOthers, kForMore, kNot };

  std::int64_t most_steps_, more_steps_;
  bool active_;
  Waits waits_ = Waits::kNot;
  std::int64_t waited_ = 0;    ///< steps since ranks last ran prompts together or timed out
  std::int64_t gathered_ = 0;  ///< steps since every rank has had a prompt
};

}  // namespace roofcast
