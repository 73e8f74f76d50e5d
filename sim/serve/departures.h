#pragma once
// Requests that leave a rank: ended, preempted, given up by their clients, or lost with a GPU.

#include <vector>

#include "sim/serve/rank_parts.h"

namespace roofcast {

class Departures {
 public:
  explicit Departures(RankParts& parts) : parts_(parts) {}

  /// A running sequence leaves. What it has computed can be found in the prefix cache; where a
  /// scheduler computes ended sequences on, its row stays.
  void retire(Slot slot);
  /// A running sequence stops, keeps its tokens, and frees its cache. Returns the number of cached tokens.
  std::int64_t suspend(Slot slot);
  /// A request leaves wherever it is.
  void drop(Slot slot);

  /// The client of a request has given up. It leaves when the step under way ends, or when its cache has landed.
  void cancel(Slot slot) { cancelled_.push_back(slot); }
  /// Whether any cancelled request can leave after the next step.
  bool due() const;
  /// Cancelled requests that can leave now do so, and join those that ended with the step.
  void drop_cancelled(std::vector<EndedRequest>& ended);

  /// A GPU has failed: all leave after the step under way.
  void fail() { failed_ = true; }
  bool failed() const { return failed_; }
  /// All requests leave with the tokens made so far, to be recomputed elsewhere; their caches are lost.
  void evacuate(SimTime now, std::vector<Slot>& out);
  /// Requests that wait for caches of a lost replica leave.
  void withdraw(int source, std::vector<Slot>& out);

 private:
  void lose_landings(SimTime now);

  RankParts& parts_;
  std::vector<Slot> cancelled_;
  bool failed_ = false;
};

}  // namespace roofcast
