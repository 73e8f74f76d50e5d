#pragma once
#include <algorithm>
#include <functional>
#include <vector>

#include "sim/serve/live_request.h"

namespace roofcast {

/// Running requests ordered by the step at which something happens to them. Entries of requests that have left (their
/// epoch has changed) are dropped when they reach the top.
class StepHeap {
 public:
  void push(std::int64_t step, Slot slot, std::uint32_t epoch) {
    heap_.push_back({step, slot, epoch});
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>{});
  }
  /// The next step at which something happens, or `default_value`.
  std::int64_t next(const RequestTable& requests, std::int64_t default_value) {
    while (!heap_.empty() && requests[heap_.front().slot].epoch != heap_.front().epoch) pop();
    return heap_.empty() ? default_value : heap_.front().step;
  }
  /// Removes and returns a request whose step has come, or kNoSlot.
  Slot pop_due(const RequestTable& requests, std::int64_t step) {
    while (!heap_.empty() && heap_.front().step <= step) {
      const Entry entry = pop();
      if (requests[entry.slot].epoch == entry.epoch) return entry.slot;
    }
    return kNoSlot;
  }

 private:
  struct Entry {
    std::int64_t step;
    Slot slot;
    std::uint32_t epoch;
    bool operator>(const Entry& o) const { return step != o.step ? step > o.step : slot > o.slot; }
  };
  Entry pop() {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
    const Entry entry = heap_.back();
    heap_.pop_back();
    return entry;
  }
  std::vector<Entry> heap_;
};

}  // namespace roofcast
