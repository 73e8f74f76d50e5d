#pragma once
// Fair queueing among several kinds of clients.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/serve/live_request.h"

namespace roofcast {

/// Start-time fair queueing (Goyal, Vin, Cheng 1996): a request's turn comes when its client's earlier ones have had
/// theirs, or now. Tokens of the prompt count once, those of the answer twice (arXiv:2401.00588, section 4.1).
class FairTurns {
 public:
  std::int64_t turn_of(const LiveRequest& r) {
    if (served_.size() <= r.client) served_.resize(r.client + std::size_t{1}, 0);
    const std::int64_t turn = std::max(clock_, served_[r.client]);
    served_[r.client] = turn + r.prompt + std::int64_t{2} * r.output;
    return turn;
  }
  /// The request with this turn has started.
  void starts(std::int64_t turn) { clock_ = std::max(clock_, turn); }

 private:
  std::int64_t clock_ = 0;            ///< turn of the latest request that started
  std::vector<std::int64_t> served_;  ///< by client: the turn after its last
};

}  // namespace roofcast
