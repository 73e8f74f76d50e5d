#pragma once
#include <string>

#include "sim/plan/measured/comparison.h"

namespace roofcast {

/// format: table | json | csv (the metrics alone).
std::string comparison_report(const Comparison& comparison, const Scenario& scenario, const std::string& format);

}  // namespace roofcast
