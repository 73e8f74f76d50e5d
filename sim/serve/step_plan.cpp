#include "sim/serve/step_plan.h"

#include <algorithm>
#include <cmath>

namespace roofcast {

StepPlan::StepPlan(RankParts& parts, Departures& departures)
    : parts_(parts), departures_(departures), budget_(std::max(1, parts.engine.max_num_batched_tokens)) {}

void StepPlan::begin(SimTime now) {
  previous_ = now_;
  now_ = now;
  chunks_.clear();
  parts_.kv.begin_step();
  parts_.reads = Seconds(0);
  decodes_ = preempted_ = held_ = false;
  batch_due_.reset();
  land();
}

void StepPlan::plan(std::optional<bool> balance) {
  balance_ = balance;
  parts_.scheduler->plan(*this);
}

/// A cache that is copied back needs no prefill.
bool StepPlan::prompt_could_run() const {
  const std::vector<Slot>& prompts = parts_.batch.prompts();
  if (std::any_of(prompts.begin(), prompts.end(), [&](Slot slot) { return !landing(parts_.requests[slot]); }))
    return true;
  return waiting_could_run();
}

bool StepPlan::waiting_could_run() const {
  if (running() >= parts_.max_sequences) return false;
  Slot first = kNoSlot;
  parts_.queue.waiting().any_of([&](Slot slot) {
    if (only_needs_cache(parts_.requests[slot])) return false;
    first = slot;
    return true;
  });
  return first != kNoSlot && admission(first, budget_ - decode_tokens()).possible;
}

void StepPlan::decode() {
  SIM_CHECK(chunks_.empty(), "decode() comes before prompts are planned");
  decodes_ = true;
  make_room_for_decodes();
}

void StepPlan::prefill(std::int64_t budget, WhenFull when_full) {
  held_ = balance_ ? *balance_ : holds(budget, when_full);
  if (held_) {
    if (balance_ && !preempted_) admit_those_back(budget);
    return;
  }
  if (!continue_within(budget, when_full) || preempted_) return;
  admit(budget, false);
}

/// TensorRT-LLM's batch waiting: while sequences decode, prefill is held until the waiting tokens reach a fraction of
/// the budget, or for a maximum number of steps. Only as many waiting prompts count as there are free slots.
bool StepPlan::holds(std::int64_t budget, WhenFull when_full) {
  const EngineSpec& engine = parts_.engine;
  if (engine.prefill_wait_ratio <= 0 || engine.prefill_wait_steps <= 0 || decoding() == 0) {
    steps_waited_ = 0;
    return false;
  }
  double tokens = 0;
  held_bytes_ = 0;
  const std::vector<Slot>& prompts = parts_.batch.prompts();
  if (when_full == WhenFull::kWait && !prompts.empty()) {
    const LiveRequest& r = parts_.requests[prompts.front()];
    const std::int64_t chunk = std::min(r.target - r.base, budget);
    held_bytes_ = parts_.kv.bytes(r.base + chunk) - parts_.kv.bytes(r.base);
    if (held_bytes_ > parts_.kv.room()) return false;  // it waits for memory, not for other prompts
  }
  for (const Slot slot : prompts) {
    const LiveRequest& r = parts_.requests[slot];
    tokens += r.target - static_cast<double>(r.base);
  }
  const WaitingQueue& queue = parts_.queue.waiting();
  Admission head;
  if (!queue.empty() && running() < parts_.max_sequences && !preempted_) head = admission(queue.front(), budget);
  if (head.possible) {
    held_bytes_ += head.room;
    const double waiting = static_cast<double>(queue.size());
    const double placed = std::min<double>(waiting, parts_.max_sequences - running());
    tokens += static_cast<double>(parts_.queue.waiting_tokens()) * placed / waiting;
  }
  if (tokens <= 0) return false;
  tokens = std::min(tokens, static_cast<double>(budget)) + static_cast<double>(decoding()) * parts_.query_len;
  const bool enough = tokens >= engine.prefill_wait_ratio * static_cast<double>(budget_);
  if (enough || steps_waited_ >= engine.prefill_wait_steps) {
    steps_waited_ = 0;
    return false;
  }
  return true;
}

void StepPlan::make_room_for_decodes() {
  parts_.kv.set_step_growth(parts_.batch.growth_of_step(parts_.query_len));
  while (parts_.kv.room() < 0) preempt(victim());
}

bool StepPlan::continue_within(std::int64_t& budget, WhenFull when_full) {
  const std::vector<Slot>& prompts = parts_.batch.prompts();
  for (std::size_t i = 0; i < prompts.size() && budget > 0; ++i) {
    const Slot slot = prompts[i];
    LiveRequest& r = parts_.requests[slot];
    const std::int64_t left = r.target - r.base;
    const std::int64_t tokens = parts_.engine.chunked_prefill ? std::min(left, budget) : left;
    const std::int64_t bytes = parts_.kv.bytes(r.base + tokens) - parts_.kv.bytes(r.base);
    while (bytes > parts_.kv.room() && r.phase == Phase::kPrefill) {
      if (when_full == WhenFull::kWait && decoding() > 0) return false;
      preempt(victim());
    }
    if (r.phase != Phase::kPrefill) return false;
    parts_.kv.take(bytes);
    chunks_.push_back({slot, static_cast<int>(tokens)});
    budget -= tokens;
  }
  return true;
}

void StepPlan::admit(std::int64_t budget, bool all) {
  if (parts_.adapters.active()) return admit_around(budget, all);
  const WaitingQueue& queue = parts_.queue.waiting();
  while (!queue.empty() && running() < parts_.max_sequences && (budget > 0 || all)) {
    const Slot slot = queue.front();
    const Admission how = admission(slot, budget);
    if (!how.possible) break;
    parts_.queue.pop();
    enter(slot, how);
    budget -= how.tokens;
  }
}

/// Skips a prompt whose adapter finds no slot; it keeps its position (vllm/v1/core/sched/scheduler.py, scheduled_loras;
/// sglang/srt/managers/scheduler.py, can_run_lora_batch).
void StepPlan::admit_around(std::int64_t budget, bool all) {
  using Offer = WaitingQueue::Offer;
  if (running() >= parts_.max_sequences || (budget <= 0 && !all)) return;
  parts_.queue.offer_all([&](Slot slot) {
    if (running() >= parts_.max_sequences || (budget <= 0 && !all)) return Offer::kStop;
    if (!parts_.adapters.can_hold(parts_.requests[slot].adapter)) return Offer::kSkipped;
    const Admission how = admission(slot, budget);
    if (!how.possible) return Offer::kStop;
    parts_.queue.admitted(slot);
    enter(slot, how);
    budget -= how.tokens;
    return Offer::kTaken;
  });
}

/// Caches are copied back whether or not prompts are held.
void StepPlan::admit_those_back(std::int64_t budget) {
  using Offer = WaitingQueue::Offer;
  if (!parts_.queue.some_only_need_cache()) return;
  parts_.queue.offer_all([&](Slot slot) {
    if (running() >= parts_.max_sequences) return Offer::kStop;
    const LiveRequest& r = parts_.requests[slot];
    if (!only_needs_cache(r) || !parts_.adapters.can_hold(r.adapter)) return Offer::kSkipped;
    const Admission how = admission(slot, budget);
    if (!how.possible) return Offer::kStop;
    parts_.queue.admitted(slot);
    enter(slot, how);
    return Offer::kTaken;
  });
}

/// Whether there is memory for the fraction of the output that the scheduler reserves.
bool StepPlan::reserves(const LiveRequest& r, Admission& how) const {
  const std::optional<double> share = parts_.scheduler->reserved_output(parts_.engine, r.preemptions > 0);
  if (!share) return true;
  const auto output = static_cast<std::int64_t>(std::ceil(*share * (parts_.options.prefill_only ? 1 : r.output)));
  const std::int64_t unseen =
      parts_.options.speculation.active() ? 0 : 1;  // the last token is not cached, except to verify drafts
  const std::int64_t longest = std::max<std::int64_t>(r.target, r.prompt + std::max<std::int64_t>(output - unseen, 0));
  how.reserve = std::max(how.bytes, parts_.kv.bytes(longest) - how.hit.bytes);
  return parts_.kv.can_reserve(how.reserve, how.hit, parts_.kv.margin(running() > 0));
}

StepPlan::Admission StepPlan::admission(Slot slot, std::int64_t budget) const {
  const LiveRequest& r = parts_.requests[slot];
  const KvAccount& kv = parts_.kv;
  Admission how;
  const bool elsewhere = r.swapped || r.remote;
  if (!elsewhere) how.hit = kv.look_up(slot);
  const std::int64_t there = elsewhere ? r.base : how.hit.tokens, left = r.target - there;
  const std::int64_t tokens = parts_.engine.chunked_prefill ? std::min(left, budget) : left;
  // Without chunking a prompt must fit; one that grew by its output before a preemption runs alone.
  const bool alone = chunks_.empty() && r.produced > 0;
  if (tokens > parts_.scheduler->uncut_tokens(budget) && !alone) return how;
  how.tokens = static_cast<int>(tokens);
  how.bytes = kv.bytes(there + tokens) - how.hit.bytes;
  // Memory for the decode step that follows as soon as the cache is back.
  const std::int64_t next = std::min<std::int64_t>(there + parts_.query_len, r.prompt + r.output);
  const std::int64_t growth = elsewhere && left == 0 ? kv.bytes(next) - how.bytes : 0;
  const std::int64_t needed = parts_.engine.prompt_must_fit ? kv.bytes(r.target) - how.hit.bytes : how.bytes;
  how.room = std::max(needed, how.bytes) + growth + how.hit.unpinned + kv.margin(running() > 0);
  how.possible = how.room <= kv.room() && reserves(r, how);
  return how;
}

void StepPlan::enter(Slot slot, const Admission& how) {
  LiveRequest& r = parts_.requests[slot];
  if (!r.started) {
    r.started = true;
    r.scheduled = now_;
    r.cached = how.hit.tokens;
  }
  parts_.batch.enter(slot);
  hold_adapter(r);
  parts_.kv.admit(slot, how.hit, how.bytes, how.reserve);
  if (r.remote) return fetch(slot, how.bytes);
  restore(r, how.hit);
  if (r.base == r.target) {  // it was decoding before
    parts_.batch.join_decodes(slot);
    parts_.delivery.join(parts_.index, r.last_token);
    if (decodes_) make_room_for_decodes();
    return;
  }
  if (how.tokens > 0) chunks_.push_back({slot, how.tokens});
  if (r.base + how.tokens < r.target) parts_.batch.add_prompt(slot);
}

/// Copies an adapter that is not on the GPU before the step.
void StepPlan::hold_adapter(const LiveRequest& r) {
  if (r.adapter == 0) return;
  const AdapterSlots::Load load = parts_.adapters.hold(r.adapter);
  AdapterMetrics& m = parts_.collector.metrics().adapters;
  ++m.starts;
  if (load.copied <= Bytes(0)) return;
  ++m.loads;
  m.loaded_bytes += load.copied.base();
  if (load.read > Seconds(0)) ++m.disk_reads;
  parts_.reads += load.read;
  parts_.kv.move(static_cast<std::int64_t>(load.copied.base()));
}

/// Copies cached blocks from host memory before the step that continues from them.
void StepPlan::restore(LiveRequest& r, const KvPool::Hit& hit) {
  if (r.swapped) {
    r.swapped = false;
    parts_.kv.move(parts_.kv.bytes(r.base));
    return;
  }
  r.base = hit.tokens;
  if (hit.host == 0) return;
  parts_.kv.move(hit.host);
  parts_.reads += hit.tier_time;
  parts_.collector.metrics().tier_tokens += hit.tier_tokens;
  parts_.collector.metrics().offload_loaded_tokens += hit.host_tokens;
  parts_.collector.metrics().offload_loaded_bytes += static_cast<double>(hit.host);
}

/// Workers that send early reserve room before the prompt is computed. A cache that had to wait for room is sent when
/// there is room.
CacheLink::Transfer StepPlan::send(const LiveRequest& r, Slot slot, Bytes cache) {
  const EarlyTransfer& early = parts_.options.early;
  if (early.when == CacheTransfer::kAfterPrefill || r.prefilled < previous_)
    return parts_.link.fetch(slot, cache, now_);
  const SimTime first = r.scheduled + SimTime::of((r.prefilled - r.scheduled).seconds() * early.lead(r.prompt));
  return parts_.link.fetch(slot, cache, now_, first, r.prefilled, early.rest(r.prompt));
}

/// The client receives its first token when the cache has arrived.
void StepPlan::fetch(Slot slot, std::int64_t bytes) {
  LiveRequest& r = parts_.requests[slot];
  r.remote = false;
  const CacheLink::Transfer transfer = send(r, slot, Bytes(static_cast<double>(bytes)));
  parts_.collector.transfer({.request = r.id,
                             .from = r.source,
                             .to = parts_.options.index,
                             .prefilled = r.prefilled.seconds(),
                             .start = transfer.begin.seconds(),
                             .end = transfer.end.seconds(),
                             .bytes = Bytes(static_cast<double>(bytes))});
  if (r.produced <= 1) r.first_token = transfer.landed;  // else its client had tokens before a replica was lost
}

void StepPlan::land() {
  while (parts_.link.landed(now_)) {
    const auto [at, slot] = parts_.link.pop();
    parts_.batch.join_decodes(slot);
    parts_.delivery.join(parts_.index, parts_.requests[slot].produced > 1 ? parts_.requests[slot].last_token : at);
  }
}

/// The youngest sequence whose cache is not in transfer.
Slot StepPlan::newest() const {
  Slot slot = parts_.batch.newest();
  while (slot != kNoSlot && landing(parts_.requests[slot])) slot = parts_.requests[slot].older;
  return slot;
}

/// vLLM: the last running sequence; with its priority policy, the one with the largest (priority, arrival)
/// (v1/core/sched/scheduler.py, schedule); prompts already in this step stay. SGLang: the decoding sequence with the
/// smallest (output, -prompt), unless there are drafts; the last one is never preempted (managers/schedule_batch.py,
/// retract_decode).
Slot StepPlan::victim() const {
  const bool fewest = parts_.engine.victim == Victim::kFewestOutputs && !parts_.options.speculation.active();
  const bool by_priority = parts_.queue.waiting().by_priority();
  if (fewest ? decoding() < 2 : !by_priority) return newest();
  Slot chosen = kNoSlot;
  std::pair<std::int64_t, std::int64_t> most;
  parts_.batch.for_each([&](Slot slot, const LiveRequest& r) {
    if (fewest ? r.phase != Phase::kDecode : landing(r)) return;
    if (!fewest && std::any_of(chunks_.begin(), chunks_.end(), [&](const auto& c) { return c.slot == slot; })) return;
    const auto key = fewest ? std::pair<std::int64_t, std::int64_t>{-parts_.batch.produced_of(r), r.prompt}
                            : std::pair<std::int64_t, std::int64_t>{r.priority, r.arrival.picoseconds()};
    if (chosen == kNoSlot || key >= most) chosen = slot, most = key;
  });
  return chosen == kNoSlot ? newest() : chosen;
}

/// Recompute: frees the cache; the prompt and all tokens so far are prefilled again, except for blocks that are still
/// cached. Swap: moves the cache to host memory and later back.
void StepPlan::preempt(Slot victim) {
  SIM_CHECK(victim != kNoSlot, "a sequence that runs alone has room");
  LiveRequest& r = parts_.requests[victim];
  const bool decoded = r.phase == Phase::kDecode, swaps = parts_.engine.preemption == "swap";
  if (!swaps) {
    const std::int64_t kept = parts_.scheduler->found_again(parts_.batch.tokens_of(r), r.prompt);
    parts_.kv.publish_computed(victim, kept);
  }
  const std::int64_t tokens = departures_.suspend(victim);
  if (swaps) {
    r.swapped = true;
    parts_.kv.move(parts_.kv.bytes(tokens));
    if (decoded) r.target = static_cast<int>(tokens);
  } else {
    r.base = 0;
    r.target = r.prompt + r.produced;
    r.encoded = false;
  }
  r.phase = Phase::kWaiting;
  ++r.preemptions;
  ++parts_.collector.metrics().preemptions;
  parts_.queue.push_preempted(victim, parts_.engine.victim == Victim::kFewestOutputs);
  preempted_ = true;
  if (parts_.kv.step_growth() > 0) parts_.kv.set_step_growth(parts_.batch.growth_of_step(parts_.query_len));
}

bool StepPlan::waits_for_batch() {
  const WaitingQueue& queue = parts_.queue.waiting();
  if (queue.empty() || queue.size() >= static_cast<std::size_t>(parts_.max_sequences)) return false;
  SimTime first = parts_.requests[queue.front()].arrival;  // the queue may not be ordered by arrival
  queue.for_each([&](Slot slot) { first = std::min(first, parts_.requests[slot].arrival); });
  const SimTime due = first + SimTime::of(parts_.engine.batch_wait);
  if (now_ < due) batch_due_ = due;
  return batch_due_ || parts_.queue.sent_by(due);
}

bool StepPlan::arrival_could_start() const {
  if (running() >= parts_.max_sequences) return false;
  if (parts_.engine.prefill_wait_steps > 0 || parts_.adapters.active()) return true;
  return parts_.queue.waiting().empty() || !parts_.queue.waiting().first_come();
}

std::int64_t StepPlan::steps_held(std::int64_t limit) const {
  if (!held_) return limit;
  if (!balance_) limit = std::min(limit, parts_.engine.prefill_wait_steps - steps_waited_);
  // The first held prompt may no longer fit.
  return parts_.kv.pool().room() - parts_.batch.growth(limit + 1) < held_bytes_ ? 1 : limit;
}

void StepPlan::advance(std::int64_t steps) {
  steps_ += steps;
  if (held_) steps_waited_ += steps;
}

bool StepPlan::fits_whole(const LiveRequest& r) const {
  return parts_.engine.chunked_prefill || r.prompt <= parts_.scheduler->uncut_tokens(budget_);
}

}  // namespace roofcast
