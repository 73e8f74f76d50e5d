// Attention-DP ranks whose prompts wait for each other. Source: TensorRT-LLM, py_executor.py (_balance_adp_requests).
#include <algorithm>

#include "sim/serve/replica.h"

namespace roofcast {

/// What each rank holds: requests of any kind, prompts that wait or are under way, decoding sequences, and the tokens
/// that it may still prefill in the step being planned.
struct Replica::RankLoad {
  std::vector<int> requests, prompts, decodes;
  std::vector<std::int64_t> room;
};

Replica::RankLoad Replica::rank_load() const {
  const auto ranks = static_cast<std::size_t>(deployment_->sharding.attention_dp);
  RankLoad load{.requests = std::vector<int>(ranks),
                .prompts = std::vector<int>(ranks),
                .decodes = std::vector<int>(ranks),
                .room = std::vector<std::int64_t>(ranks, rank_budget_)};
  waiting_.for_each([&](Slot slot) {
    const LiveRequest& r = requests_[slot];
    ++load.requests[r.rank];
    if (!comes_back(r)) ++load.prompts[r.rank];
  });
  for (Slot slot = oldest_; slot != kNoSlot; slot = requests_[slot].newer) {
    const LiveRequest& r = requests_[slot];
    ++load.requests[r.rank];
    if (r.phase == Phase::kDecode) {
      ++load.decodes[r.rank];
      load.room[r.rank] -= query_len_;
    } else if (!landing(r)) {
      ++load.prompts[r.rank];
    }
  }
  for (const Chunk& chunk : chunks_) load.room[requests_[chunk.slot].rank] -= chunk.tokens;
  return load;
}

std::vector<std::int64_t> Replica::rank_room() const { return rank_load().room; }

/// A request goes to the rank with the fewest, and stays there. `requests` of each rank are counted where still empty.
void Replica::assign_rank(LiveRequest& request, std::vector<int>& requests) const {
  if (requests.empty()) requests = rank_load().requests;
  const auto fewest = std::min_element(requests.begin(), requests.end());
  request.rank = static_cast<std::uint16_t>(fewest - requests.begin());
  ++*fewest;
}

/// While every rank decodes, prefill is held until every rank has a prompt: one without would only wait for the
/// others'. It is let through all the same when so many steps have passed since the last time, whether or not a prompt
/// waited in them.
bool Replica::hold_for_ranks() const {
  if (waiting_.empty() && partial_.empty()) return false;
  const RankLoad load = rank_load();
  bool any = false, all = true, each_decodes = true;
  for (std::size_t i = 0; i < load.requests.size(); ++i) {
    any |= load.prompts[i] > 0;
    all &= load.prompts[i] > 0;
    each_decodes &= load.decodes[i] > 0;
  }
  const bool time_is_up = rank_clock_ > 0 && rank_clock_ % engine_.prefill_wait_steps == 0;
  return any && !all && each_decodes && !time_is_up;
}

/// Caches come back whether or not prefill is held.
void Replica::plan_prefills_by_rank(SimTime now, std::int64_t budget) {
  waiting_for_more_ = hold_for_ranks();
  if (!waiting_for_more_ && !continue_prefills(budget)) return;
  if (!preempted_) admit_by_rank(now, budget);
  if (!chunks_.empty()) rank_clock_ = 0;
}

/// Each rank takes its own prompts in order, within its own budget.
void Replica::admit_by_rank(SimTime now, std::int64_t budget) {
  std::vector<std::int64_t> room = rank_room();
  using Offer = WaitingQueue::Offer;
  waiting_.offer_all([&](Slot slot) {
    if (running_ >= max_seqs_ || budget <= 0) return Offer::kStop;
    const LiveRequest& r = requests_[slot];
    if (waiting_for_more_ && !comes_back(r)) return Offer::kSkipped;
    std::int64_t& left = room[r.rank];
    const bool alone = chunks_.empty() && r.produced > 0;  // preempted, and longer than a step by now
    const bool fits = comes_back(r) || (engine_.chunked_prefill ? left > 0 : r.target - r.base <= left || alone);
    if (!fits) {
      left = 0;
      return Offer::kSkipped;
    }
    const Admission how = admission(slot, std::min(budget, left));
    if (!how.possible) return Offer::kStop;
    waiting_tokens_ -= r.target;
    left -= how.tokens;
    budget -= how.tokens;
    enter(slot, how, now);
    return Offer::kTaken;
  });
}

double Replica::fullest_rank_prefill() const {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(deployment_->sharding.attention_dp));
  for (const Chunk& chunk : chunks_) tokens[requests_[chunk.slot].rank] += chunk.tokens;
  return static_cast<double>(*std::max_element(tokens.begin(), tokens.end()));
}

}  // namespace roofcast
