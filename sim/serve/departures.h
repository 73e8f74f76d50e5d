#pragma once
// Requests that leave a rank: finished, preempted, cancelled by the client, or lost with a failed GPU.

#include <vector>

#include "sim/serve/rank_parts.h"

namespace roofcast {

class Departures {
 public:
  explicit Departures(RankParts& parts) : parts_(parts) {}

  /// A running sequence leaves. The prefix cache keeps what it computed. Its row stays where a scheduler keeps
  /// computing finished sequences.
  void retire(Slot slot);
  /// Stops a running sequence: it keeps its tokens and frees its cache. Returns the number of cached tokens.
  std::int64_t suspend(Slot slot);
  /// Removes a request in whatever state it is.
  void drop(Slot slot);

  /// The client of a request has given up. The request leaves when the current step ends or its cache has arrived.
  void cancel(Slot slot) { cancelled_.push_back(slot); }
  /// Whether any cancelled request can leave after the next step.
  bool due() const;
  /// Removes the cancelled requests that can leave now and appends them to `ended`.
  void drop_cancelled(std::vector<EndedRequest>& ended);

  /// A GPU has failed: all requests leave after the current step.
  void fail() { failed_ = true; }
  bool failed() const { return failed_; }
  /// All requests leave with the tokens generated so far, to be recomputed elsewhere. Their caches are lost.
  void evacuate(SimTime now, std::vector<Slot>& out);
  /// Removes the requests that wait for caches of a lost replica.
  void withdraw(int source, std::vector<Slot>& out);

 private:
  void lose_landings(SimTime now);

  RankParts& parts_;
  std::vector<Slot> cancelled_;
  bool failed_ = false;
};

}  // namespace roofcast
