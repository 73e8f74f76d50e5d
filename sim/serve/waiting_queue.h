#pragma once
// Prompts that wait for admission to a replica.

#include <algorithm>
#include <compare>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/serve/fair_turns.h"

namespace roofcast {

/// The order in which prompts wait.
enum class QueuePolicy { kFcfs, kPriority, kShortestFirst, kFair };
struct QueuePolicyName {
  std::string_view name, help;
  QueuePolicy policy;
};
std::span<const QueuePolicyName> queue_policies();
QueuePolicy queue_policy(const std::string& name);  ///< throws ConfigError for an unknown name

/// A deque for fcfs, a heap for the other policies. Preempted requests precede those that never ran, unless the engine
/// sends them to the back (RequestQueue::push_preempted). A removed request leaves a stale entry with an old epoch, so
/// that removal needs no search.
class WaitingQueue {
 public:
  WaitingQueue(const RequestTable& requests, QueuePolicy policy) : requests_(requests), policy_(policy) {}

  void push(Slot slot) {
    const LiveRequest& request = requests_[slot];
    first_come() ? queue_.push_back({slot, request.epoch})
                 : push_heap({key_of(request), order_++, {slot, request.epoch}});
    ++size_;
  }
  void push_preempted(Slot slot) {
    const LiveRequest& request = requests_[slot];
    first_come() ? queue_.push_front({slot, request.epoch})
                 : push_heap({policy_ == QueuePolicy::kPriority ? key_of(request) : std::int64_t{-1},
                              -order_++,
                              {slot, request.epoch}});
    ++size_;
  }
  Slot front() const { return first_come() ? queue_.front().slot : heap_.front().entry.slot; }
  void pop() {
    if (!first_come()) starts(heap_.front().key);
    pop_entry();
    --size_;
    skip_removed();
  }
  /// Call after raising the epoch of a waiting request.
  void removed() {
    --size_;
    skip_removed();
  }
  /// Offers all waiting requests in order until `offer` returns kStop. Skipped requests keep their position.
  enum class Offer { kTaken, kSkipped, kStop };
  template <class F>
  void offer_all(F offer) {
    std::deque<Entry> entries = std::exchange(queue_, {});
    std::vector<Key> keys = std::exchange(heap_, {});
    std::sort(keys.begin(), keys.end());
    Offer answer = Offer::kSkipped;
    for (; !entries.empty(); entries.pop_front()) {
      if (!waits(entries.front())) continue;
      answer = offer(entries.front().slot);
      if (answer == Offer::kStop) break;
      answer == Offer::kTaken ? void(--size_) : queue_.push_back(entries.front());
    }
    for (; !queue_.empty(); queue_.pop_back()) entries.push_front(queue_.back());
    queue_ = std::move(entries);
    for (const Key& key : keys) {
      if (!waits(key.entry)) continue;
      if (answer != Offer::kStop) answer = offer(key.entry.slot);
      answer == Offer::kTaken ? starts(key.key), void(--size_) : push_heap(key);
    }
  }
  template <class F>
  void for_each(F visit) const {
    for (const Entry& entry : queue_) {
      if (waits(entry)) visit(entry.slot);
    }
    for (const Key& key : heap_) {
      if (waits(key.entry)) visit(key.entry.slot);
    }
  }
  template <class Test>
  bool any_of(Test is) const {
    for (const Entry& entry : queue_) {
      if (waits(entry) && is(entry.slot)) return true;
    }
    for (const Key& key : heap_) {
      if (waits(key.entry) && is(key.entry.slot)) return true;
    }
    return false;
  }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool first_come() const { return policy_ == QueuePolicy::kFcfs; }
  bool by_priority() const { return policy_ == QueuePolicy::kPriority; }

 private:
  struct Entry {
    Slot slot;
    std::uint32_t epoch;
    auto operator<=>(const Entry&) const = default;
  };
  struct Key {
    std::int64_t key, order;
    Entry entry;
    auto operator<=>(const Key&) const = default;
  };
  bool waits(const Entry& entry) const { return requests_[entry.slot].epoch == entry.epoch; }
  std::int64_t key_of(const LiveRequest& r) {
    if (policy_ == QueuePolicy::kFair) return turns_.turn_of(r);
    return policy_ == QueuePolicy::kPriority ? r.priority : r.prompt;
  }
  void starts(std::int64_t key) { turns_.starts(key); }
  void push_heap(const Key& key) {
    heap_.push_back(key);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>{});
  }
  void pop_entry() {
    if (first_come()) return queue_.pop_front();
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
    heap_.pop_back();
  }
  /// The front entry is always a waiting request.
  void skip_removed() {
    while (!(first_come() ? queue_.empty() : heap_.empty()) &&
           !waits(first_come() ? queue_.front() : heap_.front().entry))
      pop_entry();
  }

  const RequestTable& requests_;
  QueuePolicy policy_;
  std::int64_t order_ = 1;
  std::size_t size_ = 0;
  std::deque<Entry> queue_;
  std::vector<Key> heap_;
  FairTurns turns_;
};

}  // namespace roofcast
