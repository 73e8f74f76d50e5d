#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "sim/plan/measured/comparison.h"

namespace roofcast::reports {

/// format: table | json | csv (metrics only). `question` (reports/question.h) is added to the JSON.
std::string comparison_report(const Comparison& comparison, const Scenario& scenario, const std::string& format,
                              const nlohmann::ordered_json& question = nullptr);

nlohmann::ordered_json comparison_json(const Comparison& comparison, const Scenario& scenario);

}  // namespace roofcast::reports
