#pragma once
// Typed access to one result of a load generator, with errors that name file and key. Declares one reader per tool;
// bench_run.cpp recognises the tool that wrote a file.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "sim/plan/measured/bench_run.h"

namespace roofcast {

class BenchReader {
 public:
  using Json = nlohmann::ordered_json;

  BenchReader(const Json& json, SourceLocation location, std::string_view tool)
      : json_(json), location_(std::move(location)), tool_(tool) {}

  const Json& json() const { return json_; }
  /// The value at "key" or "/pointer/to/key"; null if absent.
  const Json* at(std::string_view key) const;
  /// The first of these keys that is present; else null.
  const Json* first(std::initializer_list<const char*> keys) const;
  /// A number >= 0; empty if missing or null.
  std::optional<double> number(std::string_view key) const;
  std::optional<double> first_number(std::initializer_list<const char*> keys) const;
  double required(std::string_view key) const;
  std::string text(std::string_view key) const;  ///< empty if absent
  double checked(const Json& value, std::string_view key) const;
  /// A list of token counts; values below 1 are dropped.
  std::vector<int> lengths(std::string_view key) const;
  [[noreturn]] void fail(const std::string& message) const { throw ConfigError(location_, message); }
  const SourceLocation& location() const { return location_; }

 private:
  const Json& json_;
  SourceLocation location_;
  std::string tool_;
};

/// vllm bench serve and SGLang bench_serving: flat keys (vllm/benchmarks/serve.py; sglang/bench_serving.py).
BenchRun read_flat_run(const BenchReader& in, std::string_view tool);
/// AIPerf's profile_export_aiperf.json (docs/reference/json-export-schema.md of ai-dynamo/aiperf) and GenAI-Perf's
/// profile_export_genai_perf.json (genai_perf/export_data/json_exporter.py), which has no benchmark_duration.
BenchRun read_aiperf_run(const BenchReader& in, std::string_view tool);
/// One entry of `benchmarks` in GuideLLM's benchmarks.json (guidellm/benchmark/schemas/generative/); `report` has the
/// model.
BenchRun read_guidellm_run(const BenchReader& in, const BenchReader& report);
/// MLPerf LoadGen's mlperf_log_detail.txt (loadgen/results.cc, PerformanceSummary::LogDetail), which lacks prompt
/// lengths.
BenchRun read_loadgen_run(const std::string& path, std::string_view text);

/// Whether a text is a scrape of Prometheus metrics.
bool is_scrape(std::string_view text);

}  // namespace roofcast
