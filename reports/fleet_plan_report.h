#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "sim/plan/search/fleet_plan.h"

namespace roofcast {

nlohmann::ordered_json fleet_plan_json(const FleetPlan& plan);
std::string fleet_plan_text(const FleetPlan& plan);

}  // namespace roofcast
