#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "sim/plan/ladder.h"

namespace roofcast {

/// format: table | json | csv.
std::string ladder_report(const Ladder& ladder, const std::string& format);

nlohmann::ordered_json ladder_json(const Ladder& ladder);

}  // namespace roofcast
