#pragma once
// The sequences that run on a replica.

#include <vector>

#include "sim/serve/decode_growth.h"
#include "sim/serve/step_heap.h"
#include "sim/serve/window_fill.h"

namespace roofcast {

/// Prefilling and decoding sequences in order of admission. Decoding sequences are not updated every step: LiveRequest
/// stores their length and end relative to a counter of decode steps.
class Batch {
 public:
  /// `speculates`: a step may add a different number of tokens to each sequence.
  Batch(RequestTable& requests, const KvLayout& layout, bool speculates)
      : requests_(requests), layout_(layout), growth_(layout), windows_(layout), speculates_(speculates) {}

  int running() const { return running_; }  ///< prefilling, decoding, or waiting for a cache in transfer
  int decoding() const { return decoding_; }
  Slot oldest() const { return oldest_; }
  Slot newest() const { return newest_; }
  /// Prompts that need more chunks, in order of admission.
  const std::vector<Slot>& prompts() const { return prompts_; }
  bool engaged() const { return decoding_ > 0 || !prompts_.empty(); }
  template <class F>
  void for_each(F visit) const {  ///< `visit` may remove the sequence
    for (Slot slot = oldest_, next; slot != kNoSlot; slot = next) {
      next = requests_[slot].newer;
      visit(slot, requests_[slot]);
    }
  }

  /// Rows of a decode step, and the tokens in their caches; both include idle rows.
  int rows() const { return decoding_ + idle_rows_; }
  double context() const { return static_cast<double>(context_ + idle_context_); }
  /// The same with every row padded to the longest.
  double padded_context() const { return static_cast<double>(rows()) * static_cast<double>(longest_); }
  std::int64_t longest() const { return longest_; }
  std::int64_t decoded_tokens() const { return context_; }  ///< tokens in the caches of decoding sequences
  std::int64_t tokens_of(const LiveRequest& r) const { return r.phase == Phase::kDecode ? r.base + counter_ : r.base; }
  int produced_of(const LiveRequest& r) const {
    return r.phase == Phase::kDecode ? r.output - static_cast<int>(r.finish - counter_) : r.produced;
  }

  void enter(Slot slot);
  void leave(Slot slot);
  void add_prompt(Slot slot) { prompts_.push_back(slot); }
  void remove_prompt(Slot slot) { std::erase(prompts_, slot); }
  void join_decodes(Slot slot);
  void leave_decodes(Slot slot);

  /// Bytes of cache that the next `steps` decode steps allocate, without speculation.
  std::int64_t growth(std::int64_t steps) const { return growth_.bytes(counter_, steps); }
  /// Upper bound on the bytes that the next decode step allocates with `query_len` tokens per sequence.
  std::int64_t growth_of_step(int query_len) const;
  /// The largest number of decode steps up to `limit` that allocate at most `room` bytes.
  std::int64_t steps_in(std::int64_t room, std::int64_t limit) const { return growth_.steps_in(counter_, room, limit); }
  /// Decode steps until a sequence ends or fills a window of its cache, at most `limit`.
  std::int64_t steps_to_change(std::int64_t limit);
  void advance(std::int64_t steps);                   ///< each decoding sequence gains `steps` tokens
  void advance(LiveRequest& r, std::int64_t tokens);  ///< only this sequence gains tokens (speculation)
  /// Remaining output tokens of a decoding sequence.
  std::int64_t left_of(const LiveRequest& r) const { return r.finish - counter_; }
  template <class F>
  void for_each_finished(F end) {  ///< `end` removes the sequence
    if (speculates_) {
      return for_each([&](Slot slot, const LiveRequest& r) {
        if (r.phase == Phase::kDecode && r.finish <= counter_) end(slot);
      });
    }
    for (Slot slot; (slot = finishes_.pop_due(requests_, counter_)) != kNoSlot;) end(slot);
  }
  void raise_levels();  ///< sequences that have filled a window allocate smaller blocks from now on
  /// Bytes that the decoding sequences filled (KvLayout::filled_by_one) in the run just ended. Call before
  /// raise_levels().
  double filled_by_decodes(std::int64_t steps) const;

  /// A finished sequence keeps its row and its memory until close() (static batching).
  void keep_row(std::int64_t tokens, std::int64_t bytes);
  std::int64_t close();  ///< drops the idle rows; returns the bytes that they held

 private:
  RequestTable& requests_;
  const KvLayout& layout_;
  DecodeGrowth growth_;
  WindowFill windows_;
  bool speculates_;
  std::vector<Slot> prompts_;
  Slot oldest_ = kNoSlot, newest_ = kNoSlot;
  int running_ = 0, decoding_ = 0, idle_rows_ = 0;
  std::int64_t context_ = 0;  ///< tokens in the caches of decoding sequences
  std::int64_t idle_context_ = 0, idle_bytes_ = 0;
  std::int64_t longest_ = 0;  ///< tokens of the longest row since close()
  std::int64_t counter_ = 0;  ///< decode steps so far
  StepHeap finishes_, level_ends_;
};

}  // namespace roofcast
