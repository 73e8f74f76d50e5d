#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "sim/serve/sim_time.h"

namespace roofcast {

/// A binary heap of events ordered by (time, sequence number). Events at equal times run in the order scheduled, except
/// that requests are sent before replicas plan, so that a plan sees every request that has arrived by then.
class EventQueue {
 public:
  enum class Kind : std::uint8_t { kArrival, kUser, kTransfer, kTimeout, kFleet, kTurn, kReplica };
  struct Event {
    SimTime at;
    std::uint64_t sequence = 0;
    Kind kind = Kind::kArrival;
    std::int32_t index = 0;  ///< a replica, a slot, or the session of a user or a turn
    std::uint32_t generation = 0;
    bool operator>(const Event& o) const { return at != o.at ? at > o.at : sequence > o.sequence; }
  };

  void push(SimTime at, Kind kind, std::int32_t index = 0, std::uint32_t generation = 0) {
    constexpr std::uint64_t kPlansLast = std::uint64_t{1} << 62;
    heap_.push_back({at, next_++ + (kind == Kind::kReplica ? kPlansLast : 0), kind, index, generation});
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>{});
  }
  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }
  const Event& top() const { return heap_.front(); }
  std::size_t size() const { return heap_.size(); }
  bool empty() const { return heap_.empty(); }

 private:
  std::vector<Event> heap_;
  std::uint64_t next_ = 0;
};

}  // namespace roofcast
