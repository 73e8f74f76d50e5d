#include "sim/serve/rank_balance.h"

#include <algorithm>
#include <functional>

#include "sim/step/deployment.h"

namespace roofcast {

RankBalance::RankBalance(const Deployment& d, bool continuous)
    : most_steps_(d.engine.prefill_wait_steps),
      more_steps_(d.engine.prefill_batch_steps),
      active_(d.engine.attention_dp_balance && most_steps_ > 0 && continuous && d.sharding.attention_dp > 1) {}

bool RankBalance::holds(std::span<const RankWork> ranks) {
  const bool all_decode = std::all_of(ranks.begin(), ranks.end(), std::mem_fn(&RankWork::decodes));
  waits_ = Waits::kNot;
  if (std::all_of(ranks.begin(), ranks.end(), std::mem_fn(&RankWork::prompt))) {
    waited_ = 0;
    if (all_decode && gathered_ < more_steps_)
      waits_ = Waits::kForMore;
    else
      gathered_ = 0;
    return waits_ == Waits::kForMore;
  }
  if (!all_decode || waited_ + 1 >= most_steps_) {
    waited_ = 0;
    return false;
  }
  waits_ = Waits::kForOthers;
  return std::any_of(ranks.begin(), ranks.end(), std::mem_fn(&RankWork::prompt));
}

std::int64_t RankBalance::steps_until_release() const {
  return waits_ == Waits::kForMore ? more_steps_ - gathered_ : most_steps_ - 1 - waited_;
}

/// Counts the steps in which ranks wait for others, even if no prompt is waiting.
void RankBalance::advance(std::int64_t steps) {
  if (waits_ == Waits::kForMore) gathered_ += steps;
  if (waits_ == Waits::kForOthers) waited_ = (waited_ + steps) % most_steps_;
}

}  // namespace roofcast
