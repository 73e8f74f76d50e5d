#pragma once
// What a search leaves for further searches of the same plan.

#include <cstdint>
#include <map>
#include <optional>

#include "sim/plan/search/fleet_size.h"

namespace roofcast {

struct SearchMemory {
  std::optional<Candidates> candidates;  ///< of the whole plan
  std::shared_ptr<PricerPool> pricers = std::make_shared<PricerPool>();
  std::map<std::uint64_t, Evaluation> evaluations;  ///< of aggregated candidates: those of pairs depend on the best
};

}  // namespace roofcast
