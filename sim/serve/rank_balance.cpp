#include "sim/serve/rank_balance.h"

#include <algorithm>

namespace roofcast {
namespace {

/// A prompt that waits or is under way, and not one whose cache comes back.
bool has_prompt(const RankParts& rank) {
  for (const Slot slot : rank.batch.prompts()) {
    if (!landing(rank.requests[slot])) return true;
  }
  return rank.queue.waiting().any_of([&](Slot slot) { return !comes_back(rank.requests[slot]); });
}

}  // namespace

RankBalance::RankBalance(const Deployment& d, bool continuous)
    : wait_steps_(d.engine.prefill_wait_steps),
      active_(d.engine.attention_dp_balance && wait_steps_ > 0 && continuous && d.sharding.attention_dp > 1) {}

bool RankBalance::holds(std::span<const RankParts* const> ranks) const {
  const bool time_is_up = clock_ > 0 && clock_ % wait_steps_ == 0;
  const auto decodes = [](const RankParts* rank) { return rank->batch.decoding() > 0; };
  if (time_is_up || !std::all_of(ranks.begin(), ranks.end(), decodes)) return false;
  const auto with_prompt =
      std::count_if(ranks.begin(), ranks.end(), [](const RankParts* rank) { return has_prompt(*rank); });
  return with_prompt > 0 && with_prompt < static_cast<std::ptrdiff_t>(ranks.size());
}

}  // namespace roofcast
