#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "sim/plan/scenario.h"
#include "sim/plan/serving_intervals.h"
#include "sim/serve/metrics.h"

namespace roofcast::reports {

/// format: table | json | csv; keys are those of `vllm bench serve` and reports/result_keys.h. The CSV is one row with
/// the columns of a sweep. Unless null, the JSON gets `over_time` as "intervals", each of `uncertain` as METRIC_low and
/// METRIC_high (90 %), and `question`.
std::string simulation_report(const ServingMetrics& metrics, const Scenario& scenario, const std::string& format,
                              const nlohmann::ordered_json& over_time = nullptr,
                              const std::vector<MetricInterval>& uncertain = {},
                              const nlohmann::ordered_json& question = nullptr);

nlohmann::ordered_json simulation_json(const ServingMetrics& metrics, const Scenario& scenario,
                                       const nlohmann::ordered_json& over_time = nullptr,
                                       const std::vector<MetricInterval>& uncertain = {});
/// "90 requests/s come, about 75 can be held; ..."
std::string saturation_words(const ServingMetrics& metrics);

/// Header and line of --requests-out.
std::string request_csv_header();
std::string request_csv_line(const RequestRecord& request);

}  // namespace roofcast::reports
