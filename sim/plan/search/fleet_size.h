#pragma once
// How many replicas of one candidate carry the load.

#include "sim/plan/search/capacity_search.h"
#include "sim/plan/search/load_bounds.h"

namespace roofcast {

struct Evaluation {
  std::optional<PlannedDeployment> planned;  ///< meets the objectives
  std::optional<PlannedDeployment> nearest;  ///< the most replicas allowed, which still miss
  std::vector<TriedLoad> tried;
};

/// Fewest replicas that hold the whole load, simulated as a fleet; for throughput the highest load one replica holds.
Evaluation evaluate(const Candidate& candidate, const PlanSpec& plan, const LoadBounds& bounds, PricerPool& pricers);

/// Whether the planned fleet draws no more than it may, at the upper end of its power's 90 % interval.
bool within_power(const PlannedDeployment& planned, const PlanSpec& plan);

/// Another seed and four times the requests; where they fail, a replica more (of the role that it helps more), or a
/// load 4 % lower, and again. False when nothing is left to give.
bool confirm(PlannedDeployment& planned, const PlanSpec& plan, PricerPool& pricers);

}  // namespace roofcast
