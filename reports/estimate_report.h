#pragma once
#include <string>

#include "sim/plan/estimate.h"

namespace roofcast {

/// format: table | json | csv; keys as in reports/result_keys.h. The CSV is one row, with the columns of a sweep's.
std::string estimate_report(const Estimate& estimate, const Deployment& deployment, const std::string& format);

}  // namespace roofcast
