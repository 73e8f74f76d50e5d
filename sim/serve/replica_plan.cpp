// Who runs in the next step.
#include <algorithm>
#include <cmath>

#include "sim/serve/replica.h"

namespace roofcast {

/// vLLM V1 and TensorRT-LLM: decodes, then prefill chunks within what is left of the token budget. SGLang: prefill
/// chunks alone whenever there are any, else decodes.
void Replica::plan(SimTime now) {
  chunks_.clear();
  swapped_ = Bytes(0);
  step_growth_ = 0;
  preempted_ = waiting_for_more_ = false;
  land(now);
  if (rules_.mixed) {
    make_room_for_decodes();
    plan_prefills(now, budget_ - std::int64_t{decoding_} * query_len_);
  } else {
    plan_prefills(now, budget_);
    if (chunks_.empty()) make_room_for_decodes();
  }
  const bool decodes = rules_.mixed || chunks_.empty();
  run_.rows = decodes ? decoding_ + idle_rows_ : 0;
  run_.context = decodes ? static_cast<double>(context_ + idle_context_) : 0.0;
}

void Replica::plan_prefills(SimTime now, std::int64_t budget) {
  if (ranks_wait()) return plan_prefills_by_rank(now, budget);
  const bool batch_open = !rules_.whole_batch || running_ == 0;
  waiting_for_more_ = batch_open && hold_prefill(budget);
  if (waiting_for_more_ || !continue_prefills(budget) || !batch_open || preempted_) return;
  admit(now, budget);
}

/// TensorRT-LLM's batch waiting: while sequences decode, prefill is held until the tokens of the step reach a share
/// of the budget or so many steps have passed. Of what waits, as many prompts count as there are free places.
bool Replica::hold_prefill(std::int64_t budget) {
  if (engine_.prefill_wait_ratio <= 0 || engine_.prefill_wait_steps <= 0 || decoding_ == 0) {
    held_steps_ = 0;
    return false;
  }
  double tokens = 0;
  held_bytes_ = 0;
  if (!rules_.mixed && !partial_.empty()) {
    const LiveRequest& r = requests_[partial_.front()];
    const std::int64_t chunk = std::min({r.target - r.base, budget, rank_budget_});
    held_bytes_ = pool_.layout().bytes(r.base + chunk) - pool_.layout().bytes(r.base);
    if (held_bytes_ > room()) return false;  // waits for memory, not for company
  }
  for (const Slot slot : partial_) tokens += requests_[slot].target - static_cast<double>(requests_[slot].base);
  Admission head;
  if (!waiting_.empty() && running_ < max_seqs_ && !preempted_) head = admission(waiting_.front(), budget);
  if (head.possible) {
    held_bytes_ += head.room;
    const double waiting = static_cast<double>(waiting_.size());
    const double placed = std::min<double>(waiting, max_seqs_ - running_);
    tokens += static_cast<double>(waiting_tokens_) * placed / waiting;
  }
  if (tokens <= 0) return false;
  tokens = std::min(tokens, static_cast<double>(budget)) + static_cast<double>(decoding_) * query_len_;
  const bool enough = tokens >= engine_.prefill_wait_ratio * static_cast<double>(budget_);
  if (enough || held_steps_ >= engine_.prefill_wait_steps) {
    held_steps_ = 0;
    return false;
  }
  return true;
}

std::int64_t Replica::growth_of_step() const {
  if (!options_.speculation.active()) return growth_.bytes(counter_, 1);
  std::int64_t sum = 0;
  for (Slot slot = oldest_; slot != kNoSlot; slot = requests_[slot].newer) {
    const LiveRequest& r = requests_[slot];
    if (r.phase != Phase::kDecode) continue;
    const std::int64_t tokens = tokens_of(r);
    sum += pool_.layout().bytes(std::min<std::int64_t>(tokens + query_len_, r.prompt + r.output)) -
           pool_.layout().bytes(tokens);
  }
  return sum;
}

/// The youngest running sequences leave until the others can take one more step.
void Replica::make_room_for_decodes() {
  step_growth_ = growth_of_step();
  while (room() < 0) preempt(newest_);
}

/// Chunks of the prompts under way, each within what its rank has left where requests have ranks. False when one could
/// not go on: then nothing younger may start either.
bool Replica::continue_prefills(std::int64_t& budget) {
  std::vector<std::int64_t> of_ranks;
  if (ranks_wait() && !partial_.empty()) of_ranks = rank_room();
  for (std::size_t i = 0; i < partial_.size() && budget > 0; ++i) {
    const Slot slot = partial_[i];
    LiveRequest& r = requests_[slot];
    const std::int64_t of_rank = of_ranks.empty() ? rank_budget_ : of_ranks[r.rank];
    if (of_rank <= 0) continue;
    const std::int64_t left = r.target - r.base, most = std::min(budget, of_rank);
    const std::int64_t tokens = engine_.chunked_prefill ? std::min(left, most) : left;
    const std::int64_t bytes = pool_.layout().bytes(r.base + tokens) - pool_.layout().bytes(r.base);
    while (bytes > room() && r.phase == Phase::kPrefill) {
      if (!rules_.mixed && decoding_ > 0) return false;  // they go on, and end
      preempt(newest_);
    }
    if (r.phase != Phase::kPrefill) return false;
    pool_.take(bytes);
    chunks_.push_back({slot, static_cast<int>(tokens)});
    budget -= tokens;
    if (!of_ranks.empty()) of_ranks[r.rank] -= tokens;
  }
  return true;
}

void Replica::admit(SimTime now, std::int64_t& budget) {
  while (!waiting_.empty() && running_ < max_seqs_ && (budget > 0 || rules_.whole_batch)) {
    const Slot slot = waiting_.front();
    const Admission how = admission(slot, budget);
    if (!how.possible) break;
    waiting_.pop();
    waiting_tokens_ -= requests_[slot].target;
    enter(slot, how, now);
    budget -= how.tokens;
  }
}

/// The share of the output that is set aside: all of it where nothing may be preempted, and for what has been
/// preempted once.
bool Replica::admission_reserves(const LiveRequest& r, Admission& how) const {
  if (!rules_.reserves) return true;
  const double ratio = rules_.whole_output || r.preemptions > 0 ? 1.0 : engine_.reserve_output_ratio;
  const auto output = static_cast<std::int64_t>(std::ceil(ratio * output_of(r)));
  const std::int64_t unseen =
      options_.speculation.active() ? 0 : 1;  // the last token is never read again, but verified
  const std::int64_t longest = std::max<std::int64_t>(r.target, r.prompt + std::max<std::int64_t>(output - unseen, 0));
  how.reserve = std::max(how.bytes, pool_.layout().bytes(longest) - how.hit.bytes);
  const std::int64_t kept = running_ > 0 ? pool_.watermark() : 0;
  return reserved_ + pool_.pinned_bytes() + how.hit.unpinned + how.reserve <= pool_.capacity() - kept;
}

Replica::Admission Replica::admission(Slot slot, std::int64_t budget) const {
  const LiveRequest& r = requests_[slot];
  Admission how;
  const bool elsewhere = r.swapped || r.remote;
  if (!elsewhere) how.hit = pool_.look_up(requests_.prefix(slot), r.target);
  const std::int64_t there = elsewhere ? r.base : how.hit.tokens, left = r.target - there;
  const std::int64_t most = std::min(budget, rank_budget_),
                     tokens = engine_.chunked_prefill ? std::min(left, most) : left;
  // Without chunks a prompt has to fit; one that grew by what it had generated before it was preempted goes alone.
  const bool alone = chunks_.empty() && r.produced > 0;
  if (tokens > most && !rules_.whole_batch && !alone) return how;
  how.tokens = static_cast<int>(tokens);
  how.bytes = pool_.layout().bytes(there + tokens) - how.hit.bytes;
  // Room for the step that a decoding sequence takes part in as soon as it is back.
  const std::int64_t next = std::min<std::int64_t>(there + query_len_, r.prompt + r.output);
  const std::int64_t growth = elsewhere && left == 0 ? pool_.layout().bytes(next) - how.bytes : 0;
  const std::int64_t kept = running_ > 0 ? pool_.watermark() : 0;
  const std::int64_t needed = engine_.prompt_must_fit ? pool_.layout().bytes(r.target) - how.hit.bytes : how.bytes;
  how.room = std::max(needed, how.bytes) + growth + how.hit.unpinned + kept;
  how.possible = how.room <= room() && admission_reserves(r, how);
  return how;
}

void Replica::enter(Slot slot, const Admission& how, SimTime now) {
  LiveRequest& r = requests_[slot];
  if (!r.started) {
    r.started = true;
    r.scheduled = now;
    r.cached = how.hit.tokens;
  }
  r.phase = Phase::kPrefill;
  link(slot);
  if (how.hit.blocks > 0) pool_.pin(*requests_.prefix(slot), how.hit);
  pool_.take(how.bytes);
  r.pinned_bytes = how.hit.bytes;
  r.reserved = how.reserve;
  reserved_ += how.reserve;
  if (r.remote) return fetch(slot, how.bytes, now);
  if (r.swapped) {
    r.swapped = false;
    swapped_ += Bytes(static_cast<double>(pool_.layout().bytes(r.base)));
  } else {
    r.base = how.hit.tokens;
    if (how.hit.host > 0) {  // copied before the step that goes on from these blocks
      swapped_ += Bytes(static_cast<double>(how.hit.host));
      collector_.metrics().offload_loaded_tokens += how.hit.host_tokens;
      collector_.metrics().offload_loaded_bytes += static_cast<double>(how.hit.host);
    }
  }
  if (r.base == r.target) {  // it had been decoding
    join_decodes(slot);
    gaps_.join(r.last_token);
    if (rules_.mixed) make_room_for_decodes();
    return;
  }
  if (how.tokens > 0) chunks_.push_back({slot, how.tokens});
  if (r.base + how.tokens < r.target) partial_.push_back(slot);
}

/// Caches come over the link one after another; the client has its first token when its cache is here.
void Replica::fetch(Slot slot, std::int64_t bytes, SimTime now) {
  LiveRequest& r = requests_[slot];
  r.remote = false;
  const SimTime begin = std::max(link_free_, now);
  const Bytes cache(static_cast<double>(bytes));
  link_free_ = begin + SimTime::of(cache / options_.transfer_bandwidth);
  collector_.transfer({.request = r.id,
                       .from = r.source,
                       .to = options_.index,
                       .prefilled = r.prefilled.seconds(),
                       .start = begin.seconds(),
                       .end = link_free_.seconds(),
                       .bytes = cache});
  const SimTime landed = link_free_ + SimTime::of(options_.transfer_latency);
  if (r.produced <= 1) r.first_token = landed;  // else its client had tokens before a replica was lost
  landings_.push_back({landed, slot});
  fetches_.push_back(landings_.back());
}

void Replica::land(SimTime now) {
  while (!landings_.empty() && landings_.front().at <= now) {
    const auto [at, slot] = landings_.front();
    landings_.pop_front();
    join_decodes(slot);
    gaps_.join(requests_[slot].produced > 1 ? requests_[slot].last_token : at);
  }
}

/// A running sequence stops, with the tokens it has had, and gives back its cache. Returns the tokens that held.
std::int64_t Replica::suspend(Slot victim) {
  LiveRequest& r = requests_[victim];
  const std::int64_t tokens = tokens_of(r);
  if (r.phase == Phase::kDecode) {
    const int produced = produced_of(r);
    r.last_token = gaps_.leave(produced == r.produced);
    leave_decodes(victim);
    r.produced = produced;
  } else {
    std::erase(partial_, victim);
  }
  r.base = tokens;
  release(r, victim, false);
  return tokens;
}

/// vLLM frees the blocks of a preempted sequence, and finds those again whose room nobody took: tail first
/// (v1/core/sched/scheduler.py, _preempt_request; kv_cache_manager.py, get_computed_blocks). SGLang's tree has only the
/// prompt (managers/schedule_batch.py, release_req).
void Replica::leave_blocks(Slot victim) {
  if (!pool_.caches_prefixes()) return;
  LiveRequest& r = requests_[victim];
  const std::int64_t known = rules_.mixed ? tokens_of(r) : std::min<std::int64_t>(tokens_of(r), r.prompt);
  PrefixBlocks& blocks = requests_.own_blocks(victim, known, static_cast<int>(pool_.layout().block()));
  share(r, pool_.publish_computed(blocks, known));
}

/// Recompute: the cache is given up, and the prompt with all tokens so far is prefilled again but for the blocks that
/// are found. Swap: the cache moves to host memory and comes back as it was.
void Replica::preempt(Slot victim) {
  while (victim != kNoSlot && requests_[victim].phase == Phase::kPrefill &&
         requests_[victim].base == requests_[victim].target) {
    victim = requests_[victim].older;  // its cache is under way
  }
  SIM_CHECK(victim != kNoSlot, "a sequence that runs alone has room");
  LiveRequest& r = requests_[victim];
  const bool decoding = r.phase == Phase::kDecode;
  if (engine_.preemption != "swap") leave_blocks(victim);
  const std::int64_t tokens = suspend(victim), bytes = pool_.layout().bytes(tokens);
  if (engine_.preemption == "swap") {
    r.swapped = true;
    swapped_ += Bytes(static_cast<double>(bytes));
    if (decoding) r.target = static_cast<int>(tokens);
  } else {
    r.base = 0;
    r.target = r.prompt + r.produced;
  }
  r.phase = Phase::kWaiting;
  ++r.preemptions;
  ++collector_.metrics().preemptions;
  waiting_.push_preempted(victim, r);
  waiting_tokens_ += r.target;
  preempted_ = true;
  if (step_growth_ > 0) step_growth_ = growth_of_step();
}

}  // namespace roofcast
