#pragma once
// In which draws of the truth fleets were found to hold, so that no fleet is simulated in one draw twice.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

namespace roofcast {

/// By steps from the forecast's own fleet, and rank of the draw.
using DrawsHeld = std::map<std::pair<int, std::size_t>, bool>;

/// A forecast from which fleets are sized, and which orders its draws: two are equal where all of this is.
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

/// Of all forecasts of a search. Two threads may ask at once, but only of different forecasts.
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
