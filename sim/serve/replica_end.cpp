// What a run leaves behind: tokens delivered, caches grown, requests ended.
#include <algorithm>

#include "sim/serve/replica.h"

namespace roofcast {
namespace {

/// A run longer than this is cut into pieces for the distribution of gaps, for its steps grow slower and slower.
constexpr std::int64_t kGapPieceSteps = 32;
constexpr std::int64_t kGapPieces = 8;

}  // namespace

/// Caches grow by what was decoded and verified. Returns the tokens that come out: one of each decoding sequence and of
/// each prompt that is done, and the drafts that were accepted.
std::int64_t Replica::tokens_out() {
  const bool decodes = run_.rows > 0 && decoding_ > 0;
  std::int64_t tokens = decodes ? decoding_ : 0;
  for (const Chunk& c : chunks_) tokens += requests_[c.slot].base + c.tokens == requests_[c.slot].target ? 1 : 0;
  if (decodes && options_.speculation.active()) {
    tokens += verify_decodes() - decoding_;
  } else if (run_.rows > 0) {
    advance_decodes();
  }
  return tokens;
}

/// The tokens of the run pass the front end.
void Replica::deliver(std::int64_t tokens) {
  SimTime first_end = run_.end;
  if (run_.steps > 1 && first_step_matters()) {
    first_end = run_.start + SimTime::of(pricer_.decode_run(run_.rows, run_.context, query_len_, 1).time);
  }
  wait_ = front_end_.delays_tokens() && tokens > 0 ? wait_of(tokens) : SimTime();
  const FrontEnd::Delivery delivery = front_end_.deliver(first_end, run_.end, run_.steps, tokens);
  delivered_ = delivery.last;
  if (run_.rows > 0 && decoding_ > 0) record_gaps(delivery, decoding_);
}

/// Of the tokens of the run's last step, by the time since those of the step before it.
SimTime Replica::wait_of(std::int64_t tokens) const {
  if (run_.steps > 1) {
    const double before = static_cast<double>(run_.steps - 1) * static_cast<double>(run_.rows) * query_len_;
    const StepCost last = pricer_.decode_run(run_.rows, run_.context + before, query_len_, 1);
    return SimTime::of(front_end_.wait(last.time, tokens));
  }
  const std::optional<SimTime> previous = front_end_.last_output();
  if (!previous) return SimTime();
  return SimTime::of(front_end_.wait(run_.cost.time + (run_.start - *previous).seconds(), tokens));
}

void Replica::count_work() {
  StepRecord record{.replica = options_.index,
                    .start = run_.start.seconds(),
                    .end = run_.end.seconds(),
                    .steps = run_.steps,
                    .decodes = run_.rows,
                    .prefills = static_cast<int>(chunks_.size()),
                    .prefill_tokens = 0,
                    .waiting = static_cast<std::int64_t>(waiting_.size()),
                    .kv_usage = pool_.usage()};
  for (const Chunk& c : chunks_) record.prefill_tokens += c.tokens;
  collector_.metrics().offload_stored_bytes += static_cast<double>(pool_.take_stored());
  const double gpus = deployment_->sharding.gpus();
  collector_.work(run_.start, run_.end,
                  {.busy_seconds = (run_.end - run_.start).seconds().base(),
                   .flops = run_.cost.flops.base() * gpus,
                   .bytes = run_.cost.bytes.base() * gpus},
                  options_.prefill_only);
  collector_.step(record);
}

void Replica::end_run(std::vector<Ended>& ended) {
  deliver(tokens_out());
  count_work();
  carry_ += run_.cost.time - (run_.end - run_.start).seconds();
  steps_ += run_.steps;
  rank_clock_ += run_.steps;
  held_steps_ = waiting_for_more_ ? held_steps_ + run_.steps : held_steps_;
  for (const Chunk& c : chunks_) finish_chunk(c, ended);
  pop_finished(ended);
  if (!cancelled_.empty()) drop_cancelled(ended);
  raise_levels();
  if (rules_.whole_batch && running_ == 0) close_batch();
  busy_ = false;
}

void Replica::advance_decodes() {
  pool_.take(growth_.bytes(counter_, run_.steps));
  counter_ += run_.steps;
  context_ += decoding_ * run_.steps;
  idle_context_ += idle_rows_ * run_.steps;
}

/// Every sequence keeps the drafts that were accepted and one token more. Returns the tokens that came out.
std::int64_t Replica::verify_decodes() {
  std::int64_t out = 0;
  ServingMetrics& m = collector_.metrics();
  for (Slot slot = oldest_; slot != kNoSlot; slot = requests_[slot].newer) {
    LiveRequest& r = requests_[slot];
    if (r.phase != Phase::kDecode) continue;
    const int accepted = law_.draw(random_);
    const std::int64_t tokens = std::min<std::int64_t>(1 + accepted, r.finish - counter_);
    pool_.take(pool_.layout().bytes(r.base + tokens) - pool_.layout().bytes(r.base));
    r.base += tokens;
    r.finish -= tokens;
    context_ += tokens;
    out += tokens;
    m.drafted_tokens += options_.speculation.num_speculative_tokens;
    m.accepted_tokens += accepted;
  }
  return out;
}

/// Where the front end lags, or the sequences got their last tokens at other times, the first gap is not like the rest.
bool Replica::first_step_matters() const { return front_end_.delays_tokens() || gaps_.uneven(run_.start, decoding_); }

void Replica::record_gaps(const FrontEnd::Delivery& d, int sequences) {
  gaps_.begin(sequences);
  if (run_.steps == 1 || first_step_matters()) {
    gaps_.first(d.first, sequences);
    if (run_.steps > 1) record_run_gaps(d.last - d.first, 1, sequences);
  } else {
    record_run_gaps(d.last - run_.start, 0, sequences);
  }
  gaps_.end(d.last);
}

/// The gaps of the run's steps after the first `skip`, which span `span` together. Where the front end does not
/// lag they are the steps' own times, mean by piece.
void Replica::record_run_gaps(SimTime span, std::int64_t skip, int sequences) {
  const std::int64_t steps = run_.steps - skip;
  const std::int64_t pieces =
      front_end_.delays_tokens() ? 1 : std::clamp<std::int64_t>(steps / kGapPieceSteps, 1, kGapPieces);
  if (pieces == 1) return gaps_.rest(SimTime(span.picoseconds() / steps), steps, sequences);
  std::int64_t from = skip;
  for (std::int64_t p = 1; p <= pieces; ++p) {
    const std::int64_t to = skip + steps * p / pieces;
    const double context = run_.context + static_cast<double>(run_.rows) * static_cast<double>(from);
    const Seconds time = pricer_.decode_run(run_.rows, context, query_len_, to - from).time;
    gaps_.rest(SimTime::of(time / static_cast<double>(to - from)), to - from, sequences);
    from = to;
  }
}

/// A prompt whose last chunk is done has its first token, and its blocks can be shared.
void Replica::finish_chunk(const Chunk& chunk, std::vector<Ended>& ended) {
  LiveRequest& r = requests_[chunk.slot];
  r.base += chunk.tokens;
  if (r.base < r.target) return;
  if (const auto at = std::find(partial_.begin(), partial_.end(), chunk.slot); at != partial_.end()) partial_.erase(at);
  if (PrefixBlocks* prefix = requests_.prefix(chunk.slot)) {
    share(r, pool_.publish_prompt(*prefix, r.prompt));
  }
  if (r.produced == 0) {
    r.first_token = delivered_ + wait_;
  } else {
    gaps_.single(delivered_ - r.last_token);
  }
  if (++r.produced >= r.output) return end(chunk.slot, ended);
  if (options_.prefill_only) return hand_over(chunk.slot, ended);
  join_decodes(chunk.slot);
  gaps_.join(delivered_);
}

/// Private bytes of a sequence have become pinned ones.
void Replica::share(LiveRequest& r, std::int64_t bytes) {
  r.pinned_bytes += bytes;
  const std::int64_t reserved = std::min(bytes, r.reserved);
  r.reserved -= reserved;
  reserved_ -= reserved;
}

void Replica::pop_finished(std::vector<Ended>& ended) {
  if (options_.speculation.active()) {
    for (Slot slot = oldest_; slot != kNoSlot;) {
      const LiveRequest& r = requests_[slot];
      const Slot next = r.newer;
      if (r.phase == Phase::kDecode && r.finish <= counter_) end(slot, ended);
      slot = next;
    }
    return;
  }
  for (Slot slot; (slot = finishes_.pop_due(requests_, counter_)) != kNoSlot;) end(slot, ended);
}

void Replica::end(Slot slot, std::vector<Ended>& ended) {
  LiveRequest& r = requests_[slot];
  const std::int64_t tokens = tokens_of(r);
  if (r.phase == Phase::kDecode) leave_decodes(slot);
  r.base = tokens;
  if (PrefixBlocks* prefix = requests_.prefix(slot)) share(r, pool_.publish_output(*prefix, r.prompt, tokens));
  if (rules_.whole_batch) idle_row(r);
  release(r, slot, rules_.whole_batch);
  prompt_tokens_ -= r.prompt;
  r.produced = r.output;
  r.phase = Phase::kEnded;
  ended.push_back({slot, std::max(r.first_token, delivered_ + wait_), false});
}

/// What ended in this step anyway is among `ended` already; a cache under way has to land first.
void Replica::drop_cancelled(std::vector<Ended>& ended) {
  std::vector<Slot> stay;
  for (const Slot slot : cancelled_) {
    const LiveRequest& r = requests_[slot];
    if (landing(r)) {
      stay.push_back(slot);
    } else if (std::none_of(ended.begin(), ended.end(), [slot](const Ended& e) { return e.slot == slot; })) {
      drop(slot);
      ended.push_back({slot, delivered_, false});
    }
  }
  cancelled_ = std::move(stay);
}

/// A request leaves wherever it is; what it has computed stays in the prefix cache as of one that ended.
void Replica::drop(Slot slot) {
  LiveRequest& r = requests_[slot];
  if (r.phase == Phase::kWaiting) {
    const auto here = [slot](const Arrival& a) { return a.slot == slot; };
    const auto at = std::find_if(inbox_.begin(), inbox_.end(), here);
    if (at != inbox_.end()) {
      inbox_.erase(at);
    } else {
      SIM_CHECK(waiting_.erase(slot), "a waiting request is in a queue");
      waiting_tokens_ -= r.target;
    }
  } else if (r.phase == Phase::kPrefill) {
    std::erase(partial_, slot);
    release(r, slot, false);
  } else {
    const std::int64_t tokens = tokens_of(r);
    const int produced = produced_of(r);
    (void)gaps_.leave(produced == r.produced);
    leave_decodes(slot);
    r.base = tokens;
    r.produced = produced;
    if (PrefixBlocks* prefix = requests_.prefix(slot)) share(r, pool_.publish_output(*prefix, r.prompt, tokens));
    if (rules_.whole_batch) idle_row(r);
    release(r, slot, rules_.whole_batch);
  }
  prompt_tokens_ -= r.prompt;
  r.phase = Phase::kEnded;
}

/// The cache stays here until the decoding replica has fetched it; the sequence runs no longer.
void Replica::hand_over(Slot slot, std::vector<Ended>& ended) {
  LiveRequest& r = requests_[slot];
  r.held_bytes = pool_.layout().bytes(r.base) - r.pinned_bytes;
  r.source = static_cast<std::uint16_t>(options_.index);
  release(r, slot, true);
  prompt_tokens_ -= r.prompt;
  r.held = true;
  r.prefilled = run_.end;
  r.last_token = delivered_;
  ++held_;
  r.phase = Phase::kWaiting;
  ended.push_back({slot, delivered_, true});
}

/// A static batch goes on with all its rows, and keeps their room, until the last sequence has ended.
void Replica::idle_row(const LiveRequest& r) {
  idle_bytes_ += pool_.layout().bytes(r.base) - r.pinned_bytes;
  idle_context_ += r.base;
  ++idle_rows_;
}

void Replica::close_batch() {
  pool_.give(idle_bytes_);
  idle_bytes_ = idle_context_ = 0;
  idle_rows_ = 0;
}

/// Gives back what a sequence that leaves the running ones holds.
void Replica::release(LiveRequest& r, Slot slot, bool keep_room) {
  if (!keep_room) pool_.give(pool_.layout().bytes(r.base) - r.pinned_bytes);
  if (PrefixBlocks* prefix = requests_.prefix(slot)) pool_.unpin(*prefix);
  r.pinned_bytes = 0;
  reserved_ -= r.reserved;
  r.reserved = 0;
  unlink(slot);
}

void Replica::join_decodes(Slot slot) {
  LiveRequest& r = requests_[slot];
  const std::int64_t tokens = r.base;
  r.phase = Phase::kDecode;
  r.base = tokens - counter_;
  r.finish = counter_ + r.output - r.produced;
  ++decoding_;
  context_ += tokens;
  if (options_.speculation.active()) return;
  const KvLayout& layout = pool_.layout();
  const std::size_t level = layout.level(tokens);
  r.level = static_cast<std::uint8_t>(level);
  growth_.add(r.base, level);
  finishes_.push(r.finish, slot, r.epoch);
  if (level + 1 < layout.levels() && layout.paged()) {
    level_ends_.push(counter_ + layout.level_end(level) - tokens, slot, r.epoch);
  }
}

void Replica::leave_decodes(Slot slot) {
  LiveRequest& r = requests_[slot];
  context_ -= tokens_of(r);
  --decoding_;
  ++r.epoch;
  if (!options_.speculation.active()) growth_.remove(r.base, r.level);
}

/// Sequences that have filled a window take smaller blocks from here on.
void Replica::raise_levels() {
  const KvLayout& layout = pool_.layout();
  for (Slot slot; (slot = level_ends_.pop_due(requests_, counter_)) != kNoSlot;) {
    LiveRequest& r = requests_[slot];
    growth_.remove(r.base, r.level);
    ++r.level;
    growth_.add(r.base, r.level);
    if (r.level + std::size_t{1} < layout.levels()) level_ends_.push(layout.level_end(r.level) - r.base, slot, r.epoch);
  }
}

void Replica::link(Slot slot) {
  LiveRequest& r = requests_[slot];
  r.older = newest_;
  r.newer = kNoSlot;
  (newest_ == kNoSlot ? oldest_ : requests_[newest_].newer) = slot;
  newest_ = slot;
  ++running_;
}

void Replica::unlink(Slot slot) {
  const LiveRequest& r = requests_[slot];
  (r.older == kNoSlot ? oldest_ : requests_[r.older].newer) = r.newer;
  (r.newer == kNoSlot ? newest_ : requests_[r.newer].older) = r.older;
  --running_;
}

}  // namespace roofcast
