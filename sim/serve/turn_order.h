#pragma once
// Keeps turns of a session in order in an open load.

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sim/serve/sim_time.h"
#include "sim/serve/workload.h"

namespace roofcast {

/// A turn contains the previous answer, so it is sent when that answer has ended or later. A branch starts when the
/// session from which it branched has ended its last turn.
class TurnOrder {
 public:
  /// Whether the request may be sent now. If not, it is kept until what it waits for has ended.
  bool admits(const Request& request) {
    if (request.session < 0) return true;
    for (const int before : {request.session, request.root()}) {
      if (!under_way_.contains(before)) continue;
      held_[before].push_back(request);
      came_[request.id] = SimTime::of(request.arrival);
      return false;
    }
    under_way_.insert(request.session);
    return true;
  }

  /// The turn of `session` has ended. Returns the requests that waited for it, in order of arrival.
  std::vector<Request> ended(int session) {
    under_way_.erase(session);
    const auto waiting = held_.find(session);
    if (waiting == held_.end()) return {};
    std::vector<Request> out = std::move(waiting->second);
    held_.erase(waiting);
    return out;
  }

  /// When a held request arrived; for others, `sent`. May be called once per request.
  SimTime came(std::int64_t id, SimTime sent) {
    const auto held = came_.find(id);
    if (held == came_.end()) return sent;
    const SimTime came = held->second;
    came_.erase(held);
    return std::min(came, sent);
  }

 private:
  std::unordered_set<int> under_way_;                   ///< sessions with a turn that was sent and has not ended
  std::unordered_map<int, std::vector<Request>> held_;  ///< by the session that they wait for
  std::unordered_map<std::int64_t, SimTime> came_;      ///< arrival times of requests that were held and have not ended
};

}  // namespace roofcast
