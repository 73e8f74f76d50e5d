#pragma once
// Results of a search that further searches of the same plan reuse.

#include <cstdint>
#include <map>
#include <optional>

#include "sim/plan/search/fleet_size.h"

namespace roofcast {

struct SearchMemory {
  std::optional<Candidates> candidates;  ///< all candidates of the plan
  std::shared_ptr<PricerPool> pricers = std::make_shared<PricerPool>();
  std::map<std::uint64_t, Evaluation>
      evaluations;  ///< aggregated candidates only; those of pairs depend on the best score
};

}  // namespace roofcast
