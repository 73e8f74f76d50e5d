#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "sim/plan/metrics_list.h"

namespace roofcast::reports {

/// One row per record. Columns are the keys of the JSON, with units. Nested keys are prefixed by their object
/// ("goodput_share"), except in "parallelism", "precision" and "cost". Lists are left out. Missing columns are blank.
std::string records_csv(const nlohmann::ordered_json& records);

/// Adds the metrics of a point to a record by name.
void add_metrics(const MetricsList& metrics, nlohmann::ordered_json& record);

/// Selected columns of a CSV in the order of `names` ("tpot_ms,usd_per_hour"): full precision as csv, else as a table.
/// Throws ConfigError for an unknown name.
std::string with_columns(const std::string& csv, const std::string& names, const std::string& format);

}  // namespace roofcast::reports
