#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "sim/plan/search/plan_answer.h"

namespace roofcast::reports {

/// format: table | json | csv (one row per deployment; for a changing load one row per slice of the day). `question` is
/// added to the JSON unless null.
std::string plan_report(const PlanAnswer& answer, const std::string& format, bool wide = false,
                        const nlohmann::ordered_json& question = nullptr);

nlohmann::ordered_json plan_json(const PlanAnswer& answer);
/// One line: why there is no deployment, and which comes nearest.
std::string no_plan(const PlanResult& result, const PlanSpec& plan);

}  // namespace roofcast::reports
