#pragma once
#include <string>

#include "sim/plan/search/fleet_plan.h"
#include "sim/plan/search/sensitivity.h"

namespace roofcast {

struct PlanAnswer {
  PlanSpec plan;
  PlanResult result;
  Sensitivities sensitivities;                    ///< of the winner
  std::optional<FleetPlan> fleet = std::nullopt;  ///< for a load that changes over the day; the rest is for its peak
};

/// format: table | json | csv (the ranking; of a changing load its fleet by the hour).
std::string plan_report(const PlanAnswer& answer, const std::string& format);

/// One line: why there is no deployment, and which comes nearest.
std::string no_plan(const PlanResult& result, const PlanSpec& plan);

}  // namespace roofcast
