#pragma once
// Remembers simulated loads.

#include <algorithm>
#include <vector>

#include "sim/plan/search/held_load.h"

namespace roofcast {

/// The run of exactly this fleet at exactly this load with the search's seed; null if there is none.
inline const TriedLoad* find_tried(const std::vector<TriedLoad>& tried, double load, const Fleet& fleet) {
  const auto found = std::find_if(tried.begin(), tried.end(), [&](const TriedLoad& t) {
    return t.load == load && t.fleet.replicas == fleet.replicas && t.fleet.prefill_replicas == fleet.prefill_replicas;
  });
  return found != tried.end() ? &*found : nullptr;
}

}  // namespace roofcast
