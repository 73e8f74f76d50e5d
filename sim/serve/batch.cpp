#include "sim/serve/batch.h"

#include <algorithm>
#include <utility>

namespace roofcast {

void Batch::enter(Slot slot) {
  LiveRequest& r = requests_[slot];
  r.phase = Phase::kPrefill;
  r.older = newest_;
  r.newer = kNoSlot;
  (newest_ == kNoSlot ? oldest_ : requests_[newest_].newer) = slot;
  newest_ = slot;
  ++running_;
}

void Batch::leave(Slot slot) {
  const LiveRequest& r = requests_[slot];
  (r.older == kNoSlot ? oldest_ : requests_[r.older].newer) = r.newer;
  (r.newer == kNoSlot ? newest_ : requests_[r.newer].older) = r.older;
  --running_;
}

void Batch::join_decodes(Slot slot) {
  LiveRequest& r = requests_[slot];
  const std::int64_t tokens = r.base;
  r.phase = Phase::kDecode;
  r.base = tokens - counter_;
  r.finish = counter_ + r.output - r.produced;
  ++decoding_;
  context_ += tokens;
  longest_ = std::max(longest_, tokens);
  if (speculates_) return;
  const std::size_t level = layout_.level(tokens);
  r.level = static_cast<std::uint8_t>(level);
  growth_.add(r.base, level);
  windows_.add(slot, r.epoch, r.base, counter_);
  finishes_.push(r.finish, slot, r.epoch);
  if (level + 1 < layout_.levels() && layout_.paged()) {
    level_ends_.push(counter_ + layout_.level_end(level) - tokens, slot, r.epoch);
  }
}

void Batch::leave_decodes(Slot slot) {
  LiveRequest& r = requests_[slot];
  context_ -= tokens_of(r);
  --decoding_;
  ++r.epoch;
  if (speculates_) return;
  growth_.remove(r.base, r.level);
  windows_.remove(r.base, counter_);
}

std::int64_t Batch::growth_of_step(int query_len) const {
  if (!speculates_) return growth(1);
  std::int64_t sum = 0;
  for_each([&](Slot, const LiveRequest& r) {
    if (r.phase != Phase::kDecode) return;
    const std::int64_t tokens = tokens_of(r);
    sum += layout_.bytes(std::min<std::int64_t>(tokens + query_len, r.prompt + r.output)) - layout_.bytes(tokens);
  });
  return sum;
}

std::int64_t Batch::steps_to_change(std::int64_t limit) {
  const std::int64_t last = counter_ + limit;
  return std::min({finishes_.next(requests_, last), level_ends_.next(requests_, last), last}) - counter_;
}

void Batch::advance(std::int64_t steps) {
  counter_ += steps;
  longest_ += steps;
  context_ += decoding_ * steps;
  idle_context_ += idle_rows_ * steps;
  windows_.advance(requests_, counter_);
}

double Batch::filled_by_decodes(std::int64_t steps) const {
  if (!speculates_) return windows_.bytes(counter_, steps, decoding_, context_);
  double filled = 0;
  for_each([&](Slot, const LiveRequest& r) {
    if (r.phase == Phase::kDecode) filled += layout_.filled_by_one(tokens_of(r), steps);
  });
  return filled;
}

void Batch::advance(LiveRequest& r, std::int64_t tokens) {
  r.base += tokens;
  r.finish -= tokens;
  context_ += tokens;
  longest_ = std::max(longest_, r.base + counter_);
}

void Batch::raise_levels() {
  windows_.settle();
  for (Slot slot; (slot = level_ends_.pop_due(requests_, counter_)) != kNoSlot;) {
    LiveRequest& r = requests_[slot];
    growth_.remove(r.base, r.level);
    ++r.level;
    growth_.add(r.base, r.level);
    if (r.level + std::size_t{1} < layout_.levels())
      level_ends_.push(layout_.level_end(r.level) - r.base, slot, r.epoch);
  }
}

void Batch::keep_row(std::int64_t tokens, std::int64_t bytes) {
  idle_bytes_ += bytes;
  idle_context_ += tokens;
  longest_ = std::max(longest_, tokens);
  ++idle_rows_;
}

std::int64_t Batch::close() {
  idle_context_ = 0;
  idle_rows_ = 0;
  longest_ = 0;
  return std::exchange(idle_bytes_, 0);
}

}  // namespace roofcast
