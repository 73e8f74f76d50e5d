#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "sim/serve/metrics.h"

namespace roofcast {

/// A finished run in vLLM's Prometheus names (vllm/v1/metrics/loggers.py), so that dashboards made for vLLM read it.
/// OpenMetrics 1.0 text, ended by `# EOF`; times in seconds.
/// `over_time`: intervals of the run (reports/run_observers.h). With them every value has a time stamp, from 2025-01-01
/// 00:00 UTC on, so that `promtool tsdb create-blocks-from openmetrics` takes the run; histograms stand at its end
/// alone.
std::string openmetrics_text(const ServingMetrics& metrics, const std::string& model_name,
                             const nlohmann::ordered_json& over_time = nullptr);

}  // namespace roofcast
