#pragma once
// Remembers in which draws a fleet met its objectives, so that no fleet is simulated twice in the same draw.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

namespace roofcast {

/// Key: size relative to the forecast's fleet, and rank of the draw.
using DrawsHeld = std::map<std::pair<int, std::size_t>, bool>;

/// A forecast that sizes fleets and orders their draws; equal if all members are equal.
struct ForecastId {
  std::uint64_t candidate = 0;
  const void* deployment = nullptr;
  int replicas = 0, prefill_replicas = 0, tested = 0;
  std::int64_t completed = 0;
  double load = 0, duration = 0, load_uncertainty = 0;
  auto tied() const {
    return std::tie(candidate, deployment, replicas, prefill_replicas, tested, completed, load, duration,
                    load_uncertainty);
  }
  bool operator<(const ForecastId& other) const { return tied() < other.tied(); }
};

/// All forecasts of a search. Two threads may use it at the same time, but only for different forecasts.
class KnownDraws {
 public:
  std::shared_ptr<DrawsHeld> of(const ForecastId& forecast) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<DrawsHeld>& held = held_[forecast];
    if (!held) held = std::make_shared<DrawsHeld>();
    return held;
  }

 private:
  std::mutex mutex_;
  std::map<ForecastId, std::shared_ptr<DrawsHeld>> held_;
};

}  // namespace roofcast
