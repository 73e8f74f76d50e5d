#pragma once
// Prompts that wait for room on a replica.

#include <algorithm>
#include <compare>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/serve/live_request.h"

namespace roofcast {

/// In which order prompts wait.
enum class QueuePolicy { kFcfs, kPriority, kShortestFirst };
struct QueuePolicyName {
  std::string_view name, help;
  QueuePolicy policy;
};
std::span<const QueuePolicyName> queue_policies();
QueuePolicy queue_policy(const std::string& name);  ///< throws ConfigError for an unknown name

/// A queue for fcfs, a heap for the others. What was preempted comes back ahead of what never ran.
class WaitingQueue {
 public:
  explicit WaitingQueue(QueuePolicy policy) : policy_(policy) {}

  void push(Slot slot, const LiveRequest& request) {
    if (policy_ == QueuePolicy::kFcfs) {
      queue_.push_back(slot);
    } else {
      push_heap({key_of(request), order_++, slot});
    }
  }
  void push_preempted(Slot slot, const LiveRequest& request) {
    if (policy_ == QueuePolicy::kFcfs) {
      queue_.push_front(slot);
    } else {
      push_heap({policy_ == QueuePolicy::kPriority ? key_of(request) : std::int64_t{-1}, -order_++, slot});
    }
  }
  Slot front() const { return policy_ == QueuePolicy::kFcfs ? queue_.front() : heap_.front().slot; }
  void pop() {
    if (policy_ == QueuePolicy::kFcfs) {
      queue_.pop_front();
    } else {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
      heap_.pop_back();
    }
  }
  /// Takes one out of the middle; false when it is not here.
  bool erase(Slot slot) {
    if (policy_ == QueuePolicy::kFcfs) {
      const auto at = std::find(queue_.begin(), queue_.end(), slot);
      if (at == queue_.end()) return false;
      queue_.erase(at);
      return true;
    }
    const auto at = std::find_if(heap_.begin(), heap_.end(), [slot](const Key& key) { return key.slot == slot; });
    if (at == heap_.end()) return false;
    heap_.erase(at);
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>{});
    return true;
  }
  /// Offers in order all that wait, until `offer` says kStop; what it does not take stays where it was.
  enum class Offer { kTaken, kSkipped, kStop };
  template <class F>
  void offer_all(F offer) {
    std::deque<Slot> slots = std::exchange(queue_, {});
    std::vector<Key> keys = std::exchange(heap_, {});
    std::sort(keys.begin(), keys.end());
    Offer answer = Offer::kSkipped;
    for (const Slot slot : slots) {
      if (answer != Offer::kStop) answer = offer(slot);
      if (answer != Offer::kTaken) queue_.push_back(slot);
    }
    for (const Key& key : keys) {
      if (answer != Offer::kStop) answer = offer(key.slot);
      if (answer != Offer::kTaken) push_heap(key);
    }
  }
  template <class F>
  void for_each(F visit) const {
    for (const Slot slot : queue_) visit(slot);
    for (const Key& key : heap_) visit(key.slot);
  }
  std::size_t size() const { return policy_ == QueuePolicy::kFcfs ? queue_.size() : heap_.size(); }
  bool empty() const { return size() == 0; }
  bool first_come() const { return policy_ == QueuePolicy::kFcfs; }

 private:
  struct Key {
    std::int64_t key, order;
    Slot slot;
    auto operator<=>(const Key&) const = default;
  };
  std::int64_t key_of(const LiveRequest& r) const { return policy_ == QueuePolicy::kPriority ? r.priority : r.prompt; }
  void push_heap(const Key& key) {
    heap_.push_back(key);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>{});
  }

  QueuePolicy policy_;
  std::int64_t order_ = 1;
  std::deque<Slot> queue_;
  std::vector<Key> heap_;
};

}  // namespace roofcast
