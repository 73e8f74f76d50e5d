#pragma once
// The lists of a validation's result, entry by entry.

#include <vector>

#include <nlohmann/json.hpp>

#include "sim/plan/measured/coverage.h"
#include "sim/plan/measured/measured_requests.h"
#include "sim/plan/measured/serving_accuracy.h"

namespace roofcast::reports {

/// "groups"
nlohmann::ordered_json accuracy_json(const std::vector<AccuracyLine>& lines);
/// "coverage"
nlohmann::ordered_json coverage_json(const std::vector<CoverageLine>& lines);
/// "spreads"
nlohmann::ordered_json spreads_json(const std::vector<SpreadLine>& lines);
/// "statistics"
nlohmann::ordered_json statistics_json(const std::vector<RequestStatistic>& statistics);

/// Predicted / measured - 1; 0 without a measurement.
double error_of(const RequestStatistic& statistic);

}  // namespace roofcast::reports
