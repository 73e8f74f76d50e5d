#pragma once
// Caches that move from prefill replicas to decode replicas.

#include <algorithm>
#include <cmath>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "sim/serve/live_request.h"
#include "sim/step/cache_transfer.h"

namespace roofcast {

/// The parts of a cache that leave before its whole prompt is computed.
struct EarlyTransfer {
  CacheTransfer when = CacheTransfer::kAfterPrefill;
  int chunk = 0;   ///< prompt tokens computed at a time
  int layers = 1;  ///< layers per chunk

  /// The fraction of a prefill of this many tokens after which the first bytes can leave.
  double lead(double tokens) const {
    if (when == CacheTransfer::kAfterPrefill) return 1.0;
    return std::min(1.0, chunk / tokens) / (when == CacheTransfer::kByLayer ? layers : 1);
  }
  /// The bytes that cannot leave before the end of the prefill.
  double rest(double tokens) const {
    if (when == CacheTransfer::kAfterPrefill) return 1.0;
    const double last = tokens - chunk * (std::ceil(tokens / chunk) - 1.0);
    return last / tokens / (when == CacheTransfer::kByLayer ? layers : 1);
  }
};

/// One rank's side of the transfers, with a NIC of its own: the caches that it fetches one after another, and those
/// that it holds for handed-over sequences until they are sent.
class CacheLink {
 public:
  CacheLink(BytesPerSecond bandwidth, Seconds latency) : bandwidth_(bandwidth), latency_(latency) {}

  /// A cache on its way, ordered by its time of arrival.
  struct Landing {
    SimTime at;
    Slot slot;
  };
  struct Transfer {
    SimTime begin, end;  ///< on the link
    SimTime landed;
  };
  Transfer fetch(Slot slot, Bytes cache, SimTime now) { return fetch(slot, cache, now, now, now, 1.0); }
  /// Bytes can leave from `first` on, but `rest` of them not before `done`. The receiver has room from `now` on.
  Transfer fetch(Slot slot, Bytes cache, SimTime now, SimTime first, SimTime done, double rest) {
    const SimTime begin = std::max(free_, first);
    free_ = std::max(begin + SimTime::of(cache / bandwidth_), done + SimTime::of(cache * rest / bandwidth_));
    landings_.push_back({std::max(free_, now) + SimTime::of(latency_), slot});
    fetches_.push_back(landings_.back());
    return {begin, free_, landings_.back().at};
  }
  const std::deque<Landing>& landings() const { return landings_; }
  std::vector<Landing> take_fetches() { return std::exchange(fetches_, {}); }  ///< transfers begun since the last call
  bool landed(SimTime now) const { return !landings_.empty() && landings_.front().at <= now; }
  Landing pop() {
    const Landing first = landings_.front();
    landings_.pop_front();
    return first;
  }
  /// Cancels all transfers under way.
  void clear(SimTime now) {
    landings_.clear();
    free_ = now;
  }

  /// The cache of a handed-over sequence stays on this replica, `source`.
  void hold(LiveRequest& r, int source, std::int64_t bytes) {
    r.held_bytes = bytes;
    r.source = static_cast<std::uint16_t>(source);
    r.source_rank = r.rank;
    r.held = true;
    held_tokens_ += held_[r.id] = r.base;
  }
  /// The cache has been sent; returns the freed bytes.
  std::int64_t release(LiveRequest& r) {
    const auto held = held_.find(r.id);
    SIM_CHECK(r.held && held != held_.end(), "a cache is given back once");
    r.held = false;
    held_tokens_ -= held->second;
    held_.erase(held);
    return std::exchange(r.held_bytes, 0);
  }
  int held() const { return static_cast<int>(held_.size()); }
  std::int64_t held_tokens() const { return held_tokens_; }
  /// Tokens of each held cache, by request.
  const std::unordered_map<std::int64_t, std::int64_t>& held_caches() const { return held_; }

 private:
  BytesPerSecond bandwidth_;
  Seconds latency_;
  std::deque<Landing> landings_;
  std::vector<Landing> fetches_;
  SimTime free_;
  std::unordered_map<std::int64_t, std::int64_t> held_;  ///< tokens of each, by request
  std::int64_t held_tokens_ = 0;
};

}  // namespace roofcast
