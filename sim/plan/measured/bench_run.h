#pragma once
// A run that the user measured: what a load generator wrote, or what a live server counted.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
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
  std::optional<double> request_rate;   ///< requests/s, as they were sent
  std::optional<double> observed_rate;  ///< requests/s, as they ended: the file does not say how they were sent
  bool constant_rate = false;           ///< request_rate at equal gaps; else Poisson, or by `burstiness`
  bool unlimited_rate = false;          ///< "inf": sent as fast as max_concurrency allows
  bool window = false;                  ///< part of a server's life, no run from a first request to a last
  double completed = 0, failed = 0;
  double duration_s = 0;                               ///< 0: not known
  double input_tokens = 0, output_tokens = 0;          ///< of the completed; 0: not known
  std::vector<int> prompt_lengths, output_lengths;     ///< of single requests, where the file holds them
  std::vector<std::pair<std::string, double>> values;  ///< by the keys of `vllm bench serve`, in their order
  std::vector<std::string> doubts;                     ///< what the tool itself says against the run

  std::optional<double> value(std::string_view key) const;
  double requests() const { return num_prompts.value_or(completed + failed); }
  double mean_prompt() const { return input_tokens / completed; }
  double mean_output() const { return output_tokens / completed; }
  /// How requests were sent, in words: "closed loop, concurrency 8".
  std::string load() const;
  /// Requests in flight on average, by Little's law; nothing without a duration and an E2E latency.
  std::optional<double> mean_in_flight() const;
};

/// The runs of a file of vllm bench serve, SGLang bench_serving, AIPerf, GenAI-Perf, GuideLLM or MLPerf LoadGen, or of
/// `simulate --format json`; bench_reader.h has the sources of the formats. A file of GuideLLM holds one for each rate,
/// a JSONL one a line. Throws ConfigError `path:line:column` for what is no JSON, and `path` for a file of no known
/// tool and for a key that is missing or no number.
std::vector<BenchRun> read_bench_runs(const std::string& path);
/// The `which`-th of them, from 1; without it the only one. Throws where there are several, and names them.
BenchRun read_bench_run(const std::string& path, std::optional<std::int64_t> which = std::nullopt);

/// What a server's /metrics page counted up to one scrape, or between two. `window`: the time that they cover, where
/// the samples have no times; without either, rates are not known.
BenchRun read_scrapes(const std::vector<std::string>& paths, std::optional<Seconds> window);

/// Throws ConfigError for a run that nothing can be compared with.
void check_run(const BenchRun& run);

/// The same statistic of a simulated run; nothing for keys that it does not have.
std::optional<double> predicted_value(const ServingMetrics& metrics, std::string_view key);

}  // namespace roofcast
