#pragma once
// A growing load month by month: when more GPUs are needed, and which deployment is cheapest over the whole time.

#include <optional>
#include <vector>

#include "sim/plan/search/capacity_search.h"

namespace roofcast {

/// A month in which the fleet changes.
struct GrowthStage {
  int month = 0;    ///< 0: now
  double load = 0;  ///< offered in that month
  Fleet fleet{};    ///< replicas, without spares
  int spare = 0;
  int gpus = 0;  ///< including spares
  double usd_per_hour = 0;
  std::optional<double> probability;  ///< that all objectives are met
};

/// One row of the ranking as its load grows.
struct GrowthPath {
  std::size_t row = 0;              ///< in the ranking
  std::vector<GrowthStage> stages;  ///< the first is the plan itself
  std::optional<int> outgrown;      ///< first month whose load needs more than the search allows
  double usd = 0;                   ///< of all months to the end, or to the month outgrown
};

/// Stages of the best rows, ordered by total cost over all months; rows that are outgrown come last, the latest first.
/// The load of month m is the plan's x (1 + per_month)^m, of which other GPUs carry `elsewhere`. A fleet never shrinks.
/// Empty without `search.growth`. Throws ConfigError for a batch job, which has no rate that grows.
std::vector<GrowthPath> growth_paths(const PlanSpec& plan, const PlanResult& result, double elsewhere = 0);

}  // namespace roofcast
