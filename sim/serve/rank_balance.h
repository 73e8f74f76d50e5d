#pragma once
// Attention-DP ranks whose prompts wait for each other. Source: TensorRT-LLM, py_executor.py (_balance_adp_requests).

#include <cstdint>
#include <span>

namespace roofcast {

struct Deployment;

/// What a rank could run in the next step.
struct RankWork {
  bool decodes = false;
  bool prompt = false;  ///< one is under way, or waits and finds a place and room
};

/// While every rank decodes, prompts are held until every rank has one that could run: a rank without one would only
/// wait for the others'. From then on they are held for some steps more, so that ranks gather as many. After so many
/// steps prompts run all the same, whether or not one waited in them.
class RankBalance {
 public:
  /// `continuous`: the scheduler uses continuous batching.
  RankBalance(const Deployment& deployment, bool continuous);

  bool active() const { return active_; }
  /// Whether prompts are held in the step being planned. Call once per step.
  bool holds(std::span<const RankWork> ranks);
  /// For how many steps they stay held if nothing changes.
  std::int64_t steps_until_release() const;
  /// The planned step was run this many times.
  void advance(std::int64_t steps);

 private:
  enum class Waits { kForOthers, kForMore, kNot };

  std::int64_t most_steps_, more_steps_;
  bool active_;
  Waits waits_ = Waits::kNot;
  std::int64_t waited_ = 0;    ///< steps since ranks last ran prompts together, or gave up waiting for it
  std::int64_t gathered_ = 0;  ///< steps since every rank has had a prompt
};

}  // namespace roofcast
