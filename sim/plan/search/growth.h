#pragma once
// What a load that grows asks for, month by month: when the next GPUs are needed, and which deployment is cheapest to
// the end.

#include <optional>
#include <vector>

#include "sim/plan/search/capacity_search.h"

namespace roofcast {

/// A month in which the fleet changes.
struct GrowthStage {
  int month = 0;    ///< 0: now
  double load = 0;  ///< offered in that month
  Fleet fleet{};    ///< replicas, spares left out
  int spare = 0;
  int gpus = 0;  ///< spares included
  double usd_per_hour = 0;
  std::optional<double> probability;  ///< that all objectives are met
};

/// One row of the ranking as its load grows.
struct GrowthPath {
  std::size_t row = 0;              ///< of the ranking
  std::vector<GrowthStage> stages;  ///< the first is the plan itself
  std::optional<int> outgrown;      ///< month in which the load needs more than the search allows
  double usd = 0;                   ///< of all months up to the end, or to that month
};

/// Of the best rows, in the order of what they cost over all months; those that are outgrown last, the latest first.
/// The load of month m is the plan's x (1 + per_month)^m, of which other GPUs carry `elsewhere`. A fleet never shrinks.
/// Empty without `search.growth`. Throws ConfigError for a batch job, which has no rate that grows.
std::vector<GrowthPath> growth_paths(const PlanSpec& plan, const PlanResult& result, double elsewhere = 0);

}  // namespace roofcast
