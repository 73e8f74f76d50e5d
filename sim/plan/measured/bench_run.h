#pragma once
// A run that the user measured: the JSON that `vllm bench serve`, SGLang's bench_serving or AIPerf wrote.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/serve/metrics.h"

namespace roofcast {

/// A statistic of one latency, as its key says it: `mean_ttft_ms`, `median_tpot_ms`, `p99.9_itl_ms`.
struct LatencyKey {
  enum class Statistic { kMean, kStandardDeviation, kPercentile };
  enum class Latency { kTtft, kTpot, kItl, kE2el };
  Statistic statistic = Statistic::kMean;
  Latency latency = Latency::kTtft;
  double percentile = 50;
};
std::optional<LatencyKey> parse_latency_key(std::string_view key);

struct BenchRun {
  std::string path, tool, model;
  std::optional<double> num_prompts, max_concurrency, burstiness;
  std::optional<double> request_rate;  ///< requests/s
  bool unlimited_rate = false;         ///< "inf": sent as fast as max_concurrency allows
  double completed = 0, failed = 0, duration_s = 0;
  double input_tokens = 0, output_tokens = 0;          ///< of the completed
  std::vector<int> prompt_lengths, output_lengths;     ///< of single requests, where the file holds them
  std::vector<std::pair<std::string, double>> values;  ///< by the keys of `vllm bench serve`, in their order

  std::optional<double> value(std::string_view key) const;
  double requests() const { return num_prompts.value_or(completed + failed); }
  double mean_prompt() const { return input_tokens / completed; }
  double mean_output() const { return output_tokens / completed; }
  /// Requests in flight on average, by Little's law; nothing without an E2E latency.
  std::optional<double> mean_in_flight() const;
};

/// Keys: vllm/benchmarks/serve.py; sglang/bench_serving.py (total_throughput, mean_e2e_latency_ms); AIPerf's
/// profile_export_aiperf.json (docs/reference/json-export-schema.md of ai-dynamo/aiperf), whose inter_token_latency is
/// TPOT and whose inter_chunk_latency is ITL. Throws ConfigError `path:line:column` for what is no JSON, and `path` for
/// a key that is missing or no number.
BenchRun read_bench_run(const std::string& path);

/// The same statistic of a simulated run; nothing for keys that it does not have.
std::optional<double> predicted_value(const ServingMetrics& metrics, std::string_view key);

}  // namespace roofcast
