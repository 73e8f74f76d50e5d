#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "reports/verdict.h"
#include "sim/plan/search/fleet_plan.h"

namespace roofcast::reports {

nlohmann::ordered_json fleet_plan_json(const FleetPlan& plan);
void add_fleet_verdict(const FleetPlan& plan, ResultVerdict& verdict);

}  // namespace roofcast::reports
