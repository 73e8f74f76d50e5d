#pragma once
// Fair queueing between kinds of clients.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/serve/live_request.h"

namespace roofcast {

/// Start-time fair queueing (Goyal, Vin, Cheng 1996): a request is due when the earlier requests of its client have
/// been served, or now if that is later. Prompt tokens count once, output tokens twice (arXiv:2401.00588, section 4.1).
class FairTurns {
 public:
  std::int64_t turn_of(const LiveRequest& r) {
    if (served_.size() <= r.client) served_.resize(r.client + std::size_t{1}, 0);
    const std::int64_t turn = std::max(clock_, served_[r.client]);
    served_[r.client] = turn + r.prompt + std::int64_t{2} * r.output;
    return turn;
  }
  /// The request with start tag `turn` has started.
  void starts(std::int64_t turn) { clock_ = std::max(clock_, turn); }

 private:
  std::int64_t clock_ = 0;            ///< start tag of the request that started last
  std::vector<std::int64_t> served_;  ///< per client: the earliest start tag of its next request
};

}  // namespace roofcast
