#pragma once
// A simulated run in the formats of load generators, for scripts and dashboards that read these.

#include <string>
#include <string_view>

#include "sim/plan/scenario.h"
#include "sim/serve/metrics.h"

namespace roofcast::reports {

struct BenchFormat {
  std::string_view name, help;
  std::string (*write)(const ServingMetrics& metrics, const Scenario& scenario);
  void (*check)(const Scenario& scenario) = nullptr;  ///< throws ConfigError for a load that the tool does not support
};
/// vllm, sglang, aiperf, genai-perf, guidellm, loadgen or llama-bench. sim/plan/measured/bench_reader.h and
/// llama_bench.h read these formats and have their sources. Throws ConfigError, starting with `origin`, for an unknown
/// name.
const BenchFormat& find_bench_format(const std::string& name, const std::string& origin);

}  // namespace roofcast::reports
