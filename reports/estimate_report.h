#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/plan/estimate.h"

namespace roofcast::reports {

/// format: table | json | csv; keys as in reports/result_keys.h. The CSV is one row with the columns of a sweep.
/// `question` is added to the JSON unless null.
std::string estimate_report(const Estimate& estimate, const Deployment& deployment, const std::string& format,
                            const nlohmann::ordered_json& question = nullptr);

/// Warnings: it does not fit, the engine would run fewer sequences at a time, or refuse the request.
std::vector<std::string> warnings_of(const Estimate& estimate, const Deployment& deployment);
/// The same as JSON.
nlohmann::ordered_json estimate_json(const Estimate& estimate, const Deployment& deployment);

}  // namespace roofcast::reports
