#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "sim/plan/metrics_list.h"

namespace roofcast::reports {

/// One row a record. Columns are the keys of the JSON, units included; "parallelism", "precision" and "cost" add
/// nothing to the names of what they hold, other objects their own ("goodput_share"). Lists are left out. A record that
/// lacks a column has a blank there.
std::string records_csv(const nlohmann::ordered_json& records);

/// The metrics of a point, added to a record under their names.
void add_metrics(const MetricsList& metrics, nlohmann::ordered_json& record);

/// Columns of a CSV by name, in the order of `names` ("tpot_ms,usd_per_hour"): as csv in full, else as a table for
/// people. Throws ConfigError for an unknown name.
std::string with_columns(const std::string& csv, const std::string& names, const std::string& format);

}  // namespace roofcast::reports
