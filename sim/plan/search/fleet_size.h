#pragma once
// How many replicas of one candidate are needed for the load.

#include "sim/plan/search/capacity_search.h"
#include "sim/plan/search/load_bounds.h"

namespace roofcast {

struct Evaluation {
  std::optional<PlannedDeployment> planned;  ///< the fleet that meets the objectives
  std::optional<PlannedDeployment> nearest;  ///< the largest allowed fleet, which still misses
  std::vector<TriedLoad> tried;
};

/// The fewest replicas that carry the whole load, simulated as a fleet. For throughput: the highest load of one
/// replica.
Evaluation evaluate(const Candidate& candidate, const PlanSpec& plan, const LoadBounds& bounds, PricerPool& pricers);

/// Whether the upper end of the fleet's 90 % power interval is within its limit.
bool within_power(const PlannedDeployment& planned, const PlanSpec& plan);

/// Simulates again with another seed and four times the requests. If that fails, adds one replica (of the role that
/// helps more), or lowers the load by 4 %, and repeats. False if neither is possible any more.
bool confirm(PlannedDeployment& planned, const PlanSpec& plan, PricerPool& pricers);

}  // namespace roofcast
