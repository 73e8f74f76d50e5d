#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "sim/plan/ladder.h"

namespace roofcast::reports {

/// format: table | json | csv. `question` of reports/question.h, which the JSON keeps.
std::string ladder_report(const Ladder& ladder, const std::string& format,
                          const nlohmann::ordered_json& question = nullptr);

nlohmann::ordered_json ladder_json(const Ladder& ladder);

}  // namespace roofcast::reports
