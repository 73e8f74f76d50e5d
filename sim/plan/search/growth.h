#pragma once
// A growing load month by month: when more GPUs are needed, and which deployment is cheapest over the whole period.

#include <optional>
#include <vector>

#include "sim/plan/search/capacity_search.h"

namespace roofcast {

/// A month in which the fleet changes.
struct GrowthStage {
  int month = 0;    ///< 0: now
  double load = 0;  ///< offered load in that month
  Fleet fleet{};    ///< replicas, without spares
  int spare = 0;
  int gpus = 0;  ///< including spares
  double usd_per_hour = 0;
  std::optional<double> probability;  ///< that all objectives are met
};

/// How one row of the ranking grows with the load.
struct GrowthPath {
  std::size_t row = 0;              ///< index in the ranking
  std::vector<GrowthStage> stages;  ///< the first is the plan itself
  std::optional<int> outgrown;      ///< first month in which the load exceeds what the search allows
  double usd = 0;                   ///< cost of all months to the end, or until outgrown
};

/// Growth paths of the best rows, ordered by total cost over all months; rows that are outgrown come last, the latest
/// first. The load in month m is the plan's x (1 + per_month)^m; other GPUs carry `elsewhere` of it. A fleet never
/// shrinks. Empty without `search.growth`. Throws ConfigError for a batch job, which has no rate.
std::vector<GrowthPath> growth_paths(const PlanSpec& plan, const PlanResult& result, double elsewhere = 0);

}  // namespace roofcast
