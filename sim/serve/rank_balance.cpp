#include "sim/serve/rank_balance.h"

#include <algorithm>

namespace roofcast {

RankBalance::RankBalance(const Deployment& d, bool continuous, int query_len, const RequestTable& requests,
                         const RequestQueue& queue, const Batch& batch)
    : requests_(requests),
      queue_(queue),
      batch_(batch),
      ranks_(static_cast<std::size_t>(d.sharding.attention_dp)),
      wait_steps_(d.engine.prefill_wait_steps),
      budget_(std::max(1, d.engine.max_num_batched_tokens)),
      query_len_(query_len),
      active_(d.engine.attention_dp_balance && wait_steps_ > 0 && continuous && ranks_ > 1) {}

/// What each rank holds: requests of any kind, prompts that wait or are under way, decoding sequences, and the tokens
/// that it may prefill beside them in a step.
struct RankBalance::Load {
  std::vector<int> requests, prompts, decodes;
  std::vector<std::int64_t> room;
};

RankBalance::Load RankBalance::load() const {
  Load load{.requests = std::vector<int>(ranks_),
            .prompts = std::vector<int>(ranks_),
            .decodes = std::vector<int>(ranks_),
            .room = std::vector<std::int64_t>(ranks_, budget_)};
  queue_.waiting().for_each([&](Slot slot) {
    const LiveRequest& r = requests_[slot];
    ++load.requests[r.rank];
    if (!comes_back(r)) ++load.prompts[r.rank];
  });
  batch_.for_each([&](Slot, const LiveRequest& r) {
    ++load.requests[r.rank];
    if (r.phase == Phase::kDecode) {
      ++load.decodes[r.rank];
      load.room[r.rank] -= query_len_;
    } else if (!landing(r)) {
      ++load.prompts[r.rank];
    }
  });
  return load;
}

void RankBalance::assign(LiveRequest& request, std::vector<int>& requests) const {
  if (requests.empty()) requests = load().requests;
  const auto fewest = std::min_element(requests.begin(), requests.end());
  request.rank = static_cast<std::uint16_t>(fewest - requests.begin());
  ++*fewest;
}

bool RankBalance::holds() const {
  if (queue_.waiting().empty() && batch_.prompts().empty()) return false;
  const Load now = load();
  bool any = false, all = true, each_decodes = true;
  for (std::size_t i = 0; i < ranks_; ++i) {
    any |= now.prompts[i] > 0;
    all &= now.prompts[i] > 0;
    each_decodes &= now.decodes[i] > 0;
  }
  const bool time_is_up = clock_ > 0 && clock_ % wait_steps_ == 0;
  return any && !all && each_decodes && !time_is_up;
}

std::vector<std::int64_t> RankBalance::room(const std::vector<PlannedChunk>& chunks) const {
  std::vector<std::int64_t> room = load().room;
  for (const PlannedChunk& chunk : chunks) room[requests_[chunk.slot].rank] -= chunk.tokens;
  return room;
}

double RankBalance::fullest_prefill(const std::vector<PlannedChunk>& chunks) const {
  std::vector<std::int64_t> tokens(ranks_);
  for (const PlannedChunk& chunk : chunks) tokens[requests_[chunk.slot].rank] += chunk.tokens;
  return static_cast<double>(*std::max_element(tokens.begin(), tokens.end()));
}

}  // namespace roofcast
