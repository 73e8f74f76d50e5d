#pragma once
// Requests that were sent to a replica and do not run yet.

#include <algorithm>
#include <deque>

#include "base/error.h"
#include "sim/serve/waiting_queue.h"

namespace roofcast {

/// First on their way through the front end, by the time at which the engine sees them, then waiting to be admitted.
class RequestQueue {
 public:
  struct Arrival {
    SimTime ready;
    Slot slot;
  };
  RequestQueue(RequestTable& requests, QueuePolicy policy) : requests_(requests), waiting_(policy) {}

  void send(SimTime ready, Slot slot) {
    inbox_.push_back({ready, slot});
    prompt_tokens_ += requests_[slot].prompt;
  }
  const std::deque<Arrival>& inbox() const { return inbox_; }
  Slot take_arrival() {
    const Slot slot = inbox_.front().slot;
    inbox_.pop_front();
    return slot;
  }

  const WaitingQueue& waiting() const { return waiting_; }
  void push(Slot slot) {
    waiting_.push(slot, requests_[slot]);
    waiting_tokens_ += requests_[slot].target;
  }
  void push_preempted(Slot slot) {
    waiting_.push_preempted(slot, requests_[slot]);
    waiting_tokens_ += requests_[slot].target;
  }
  void pop() {
    waiting_tokens_ -= requests_[waiting_.front()].target;
    waiting_.pop();
  }
  /// WaitingQueue::offer_all. `offer` calls admitted() of what it takes.
  template <class F>
  void offer_all(F offer) {
    waiting_.offer_all(offer);
  }
  void admitted(Slot slot) { waiting_tokens_ -= requests_[slot].target; }
  /// Takes out one request, wherever it is.
  void remove(Slot slot) {
    const auto at = std::find_if(inbox_.begin(), inbox_.end(), [slot](const Arrival& a) { return a.slot == slot; });
    if (at != inbox_.end()) {
      inbox_.erase(at);
    } else {
      SIM_CHECK(waiting_.erase(slot), "a waiting request is in a queue");
      waiting_tokens_ -= requests_[slot].target;
    }
  }
  /// Visits those that wait, then those on their way.
  template <class F>
  void for_each(F visit) const {
    waiting_.for_each(visit);
    for (const Arrival& arrival : inbox_) visit(arrival.slot);
  }
  /// Takes out all: those that wait in order, then those on their way.
  void clear(std::vector<Slot>& out) {
    for (; !waiting_.empty(); waiting_.pop()) out.push_back(waiting_.front());
    for (const Arrival& arrival : inbox_) out.push_back(arrival.slot);
    inbox_.clear();
    waiting_tokens_ = prompt_tokens_ = 0;
  }

  std::size_t size() const { return inbox_.size() + waiting_.size(); }
  std::int64_t waiting_tokens() const { return waiting_tokens_; }  ///< to prefill, of those that wait
  /// Of the prompts of all requests here, running ones included; left() tells that one is gone.
  std::int64_t prompt_tokens() const { return prompt_tokens_; }
  void left(const LiveRequest& request) { prompt_tokens_ -= request.prompt; }

 private:
  RequestTable& requests_;
  std::deque<Arrival> inbox_;
  WaitingQueue waiting_;
  std::int64_t waiting_tokens_ = 0, prompt_tokens_ = 0;
};

}  // namespace roofcast
