#pragma once
// A run measured by the user: the file of a load generator, or the counters of a live server.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "sim/serve/metrics.h"

namespace roofcast {

/// A statistic of one latency, as in its key: `mean_ttft_ms`, `median_tpot_ms`, `p99.9_itl_ms`.
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
  std::optional<double> request_rate;   ///< requests/s sent
  std::optional<double> observed_rate;  ///< requests/s completed, if the file does not say how they were sent
  bool constant_rate = false;           ///< request_rate at equal gaps; else Poisson, or by `burstiness`
  bool unlimited_rate = false;          ///< "inf": sent as fast as max_concurrency allows
  bool window = false;                  ///< a time window of a live server, not a complete run
  double completed = 0, failed = 0;
  double duration_s = 0;                               ///< 0: not known
  double input_tokens = 0, output_tokens = 0;          ///< of completed requests; 0: unknown
  std::vector<int> prompt_lengths, output_lengths;     ///< per request, if the file has them
  std::vector<std::pair<std::string, double>> values;  ///< keyed as in `vllm bench serve`, in the same order
  std::vector<std::string> doubts;                     ///< warnings of the tool about the run

  std::optional<double> value(std::string_view key) const;
  double requests() const { return num_prompts.value_or(completed + failed); }
  double mean_prompt() const { return input_tokens / completed; }
  double mean_output() const { return output_tokens / completed; }
  /// How requests were sent, in words: "closed loop, concurrency 8".
  std::string load() const;
  /// Mean requests in flight, by Little's law; empty without a duration and an E2E latency.
  std::optional<double> mean_in_flight() const;
};

/// The runs in a file of vllm bench serve, SGLang bench_serving, AIPerf, GenAI-Perf, GuideLLM or MLPerf LoadGen, or of
/// `simulate --format json`; bench_reader.h has the sources of the formats. GuideLLM writes one run per rate, a JSONL
/// file one per line. Throws ConfigError `path:line:column` for invalid JSON, and `path` for an unknown tool and for
/// missing or non-numeric keys.
std::vector<BenchRun> read_bench_runs(const std::string& path);
/// Run number `which`, from 1. Without it the file must have a single run; otherwise throws and lists them.
BenchRun read_bench_run(const std::string& path, std::optional<std::int64_t> which = std::nullopt);

/// The counters of a server's /metrics page up to one scrape, or between two. `window`: the time that they cover, if
/// the samples have no timestamps; without either, rates are unknown.
BenchRun read_scrapes(const std::vector<std::string>& paths, std::optional<Seconds> window);

/// Throws ConfigError for a run without anything to compare.
void check_run(const BenchRun& run);

/// The same statistic of a simulated run; empty for unknown keys.
std::optional<double> predicted_value(const ServingMetrics& metrics, std::string_view key);

}  // namespace roofcast
