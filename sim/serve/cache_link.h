#pragma once
// KV cache transfers from prefill replicas to decode replicas.

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

/// How much of a KV cache is sent before the prefill of the whole prompt has ended.
struct EarlyTransfer {
  CacheTransfer when = CacheTransfer::kAfterPrefill;
  int chunk = 0;   ///< prompt tokens per chunk
  int layers = 1;  ///< layers that a chunk passes

  /// The fraction of the prefill of `tokens` tokens after which the first bytes can be sent.
  double lead(double tokens) const {
    if (when == CacheTransfer::kAfterPrefill) return 1.0;
    return std::min(1.0, chunk / tokens) / (when == CacheTransfer::kByLayer ? layers : 1);
  }
  /// The fraction of the bytes that cannot be sent before the prefill ends.
  double rest(double tokens) const {
    if (when == CacheTransfer::kAfterPrefill) return 1.0;
    const double last = tokens - chunk * (std::ceil(tokens / chunk) - 1.0);
    return last / tokens / (when == CacheTransfer::kByLayer ? layers : 1);
  }
};

/// The transfers of one rank, which has its own NIC: caches that it fetches one after another, and caches that it keeps
/// for handed-over sequences until they are sent.
class CacheLink {
 public:
  CacheLink(BytesPerSecond bandwidth, Seconds latency) : bandwidth_(bandwidth), latency_(latency) {}

  /// A cache in transfer, ordered by arrival time.
  struct Landing {
    SimTime at;
    Slot slot;
  };
  struct Transfer {
    SimTime begin, end;  ///< on the link
    SimTime landed;
  };
  Transfer fetch(Slot slot, Bytes cache, SimTime now) { return fetch(slot, cache, now, now, now, 1.0); }
  /// Bytes can be sent from `first` on, but the fraction `rest` of them not before `done`. The receiver has room from
  /// `now` on.
  Transfer fetch(Slot slot, Bytes cache, SimTime now, SimTime first, SimTime done, double rest) {
    const SimTime begin = std::max(free_, first);
    free_ = std::max(begin + SimTime::of(cache / bandwidth_), done + SimTime::of(cache * rest / bandwidth_));
    landings_.push_back({std::max(free_, now) + SimTime::of(latency_), slot});
    fetches_.push_back(landings_.back());
    return {begin, free_, landings_.back().at};
  }
  const std::deque<Landing>& landings() const { return landings_; }
  /// Transfers started since the last call.
  std::vector<Landing> take_fetches() { return std::exchange(fetches_, {}); }
  bool landed(SimTime now) const { return !landings_.empty() && landings_.front().at <= now; }
  Landing pop() {
    const Landing first = landings_.front();
    landings_.pop_front();
    return first;
  }
  /// Cancels all transfers in progress.
  void clear(SimTime now) {
    landings_.clear();
    free_ = now;
  }

  /// This replica, `source`, keeps the cache of a handed-over sequence.
  void hold(LiveRequest& r, int source, std::int64_t bytes) {
    r.held_bytes = bytes;
    r.source = static_cast<std::uint16_t>(source);
    r.source_rank = r.rank;
    r.held = true;
    held_tokens_ += held_[r.id] = r.base;
  }
  /// The cache has been sent. Returns the freed bytes.
  std::int64_t release(LiveRequest& r) {
    const auto held = held_.find(r.id);
    SIM_CHECK(r.held && held != held_.end(), "a cache is released once");
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
