#pragma once
// Attention-DP ranks whose prompts wait for each other. Source: TensorRT-LLM, py_executor.py (_balance_adp_requests).

#include <memory>
#include <span>

#include "sim/serve/rank_parts.h"

namespace roofcast {

/// While every rank decodes, prompts are held until every rank has one: a rank without a prompt would only wait for
/// the others'. After so many steps prompts run all the same, whether or not one waited in them.
class RankBalance {
 public:
  /// `continuous`: the scheduler batches so.
  RankBalance(const Deployment& deployment, bool continuous);

  bool active() const { return active_; }
  /// Whether prompts are held in the step being planned.
  bool holds(std::span<const RankParts* const> ranks) const;
  /// Steps after which held prompts run all the same.
  std::int64_t steps_until_release() const { return wait_steps_ - clock_ % wait_steps_; }

  void advance(std::int64_t steps) { clock_ += steps; }
  void prefilled() { clock_ = 0; }

 private:
  std::int64_t wait_steps_;
  bool active_;
  std::int64_t clock_ = 0;  ///< steps since ranks last prefilled together, or gave up waiting for it
};

}  // namespace roofcast
