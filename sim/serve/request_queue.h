#pragma once
// Requests that were sent to a replica but do not run yet.

#include <deque>

#include "sim/serve/waiting_queue.h"

namespace roofcast {

/// A request first passes the front end, ordered by when the engine sees it, then waits for admission.
class RequestQueue {
 public:
  RequestQueue(RequestTable& requests, QueuePolicy policy) : requests_(requests), waiting_(requests, policy) {}

  void send(SimTime ready, Slot slot) {
    LiveRequest& r = requests_[slot];
    r.arrived = false;
    inbox_.push_back({ready, slot, r.epoch});
    ++on_their_way_;
    prompt_tokens_ += r.prompt;
  }
  std::size_t on_their_way() const { return on_their_way_; }
  /// When the engine sees the next request from the front end.
  SimTime first_ready() const { return inbox_.front().ready; }
  /// Whether a request still in the front end was sent by `time`; front ends keep the order.
  bool sent_by(SimTime time) const { return on_their_way_ > 0 && requests_[inbox_.front().slot].arrival <= time; }
  Slot take_arrival() {
    const Slot slot = inbox_.front().slot;
    inbox_.pop_front();
    --on_their_way_;
    skip_removed();
    return slot;
  }

  const WaitingQueue& waiting() const { return waiting_; }
  void push(Slot slot) {
    waiting_.push(slot);
    begin_to_wait(slot);
  }
  /// `behind`: under first come, first served, the request waits behind all others.
  void push_preempted(Slot slot, bool behind = false) {
    if (behind && waiting_.first_come()) {
      waiting_.push(slot);
    } else {
      waiting_.push_preempted(slot);
    }
    begin_to_wait(slot);
  }
  void pop() {
    admitted(waiting_.front());
    waiting_.pop();
  }
  /// See WaitingQueue::offer_all. `offer` must call admitted() for what it takes.
  template <class F>
  void offer_all(F offer) {
    waiting_.offer_all(offer);
  }
  void admitted(Slot slot) { no_longer_waits(requests_[slot]); }
  /// Removes one request, in whichever queue it is.
  void remove(Slot slot) {
    LiveRequest& r = requests_[slot];
    ++r.epoch;
    if (r.arrived) {
      no_longer_waits(r);
      return waiting_.removed();
    }
    --on_their_way_;
    skip_removed();
  }
  /// Visits the waiting requests, then those in the front end.
  template <class F>
  void for_each(F visit) const {
    waiting_.for_each(visit);
    for (const Arrival& arrival : inbox_) {
      if (comes(arrival)) visit(arrival.slot);
    }
  }
  /// Removes all requests: those waiting, in order, then those in the front end.
  void clear(std::vector<Slot>& out) {
    for (; !waiting_.empty(); waiting_.pop()) out.push_back(waiting_.front());
    for (const Arrival& arrival : inbox_) {
      if (comes(arrival)) out.push_back(arrival.slot);
    }
    inbox_.clear();
    on_their_way_ = 0;
    waiting_tokens_ = prompt_tokens_ = 0;
    only_need_cache_ = 0;
  }

  std::size_t size() const { return on_their_way_ + waiting_.size(); }
  /// Whether some waiting request only needs its cache copied back (see only_needs_cache()).
  bool some_only_need_cache() const { return only_need_cache_ > 0; }
  std::int64_t waiting_tokens() const { return waiting_tokens_; }  ///< tokens to prefill of the waiting requests
  /// Prompt tokens of all requests here, running ones included. left() subtracts those of a finished request.
  std::int64_t prompt_tokens() const { return prompt_tokens_; }
  void left(const LiveRequest& request) { prompt_tokens_ -= request.prompt; }

 private:
  struct Arrival {
    SimTime ready;
    Slot slot;
    std::uint32_t epoch;
  };
  bool comes(const Arrival& arrival) const { return requests_[arrival.slot].epoch == arrival.epoch; }
  void skip_removed() {
    while (!inbox_.empty() && !comes(inbox_.front())) inbox_.pop_front();
  }
  void begin_to_wait(Slot slot) {
    LiveRequest& r = requests_[slot];
    r.arrived = true;
    waiting_tokens_ += r.target;
    r.waits_for_cache = only_needs_cache(r);
    only_need_cache_ += r.waits_for_cache ? 1 : 0;
  }

  void no_longer_waits(LiveRequest& r) {
    waiting_tokens_ -= r.target;
    only_need_cache_ -= r.waits_for_cache ? 1 : 0;
    r.waits_for_cache = false;
  }

  RequestTable& requests_;
  std::deque<Arrival> inbox_;  ///< removed requests stay in it until they reach its front
  std::size_t on_their_way_ = 0;
  WaitingQueue waiting_;
  std::int64_t waiting_tokens_ = 0, prompt_tokens_ = 0, only_need_cache_ = 0;
};

}  // namespace roofcast
