// MLPerf LoadGen: mlperf_log_detail.txt, a line ":::MLLOG {"key": ..., "value": ...}" for each figure.

#include <array>
#include <map>

#include <fmt/format.h>

#include "base/json_file.h"
#include "base/text.h"
#include "sim/plan/measured/bench_reader.h"

namespace roofcast {
namespace {

constexpr std::string_view kStart = ":::MLLOG";

nlohmann::ordered_json values_of(const std::string& path, std::string_view text) {
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    const auto at = line.find(kStart);
    if (at == std::string::npos) continue;
    const auto entry = parse_json(path, line.substr(at + kStart.size()), "a line of MLPerf LoadGen");
    if (!entry.is_object() || !entry.contains("key") || !entry.contains("value") || !entry["key"].is_string())
      throw ConfigError(SourceLocation{path, number, 1}, "a line of MLPerf LoadGen needs 'key' and 'value'");
    values[entry["key"].get<std::string>()] = entry["value"];
  }
  return values;
}

/// Latencies are in nanoseconds: result_first_token_99.00_percentile_latency_ns, result_first_token_mean_latency_ns.
void read_latencies(const BenchReader& in, BenchRun& run) {
  struct Form {
    const char *mean, *before, *after, *name;
  };
  static constexpr std::array kForms{
      Form{"result_first_token_mean_latency_ns", "result_first_token_", "_percentile_latency_ns", "ttft"},
      Form{"result_time_to_output_token_mean", "result_time_per_output_token_", "_percentile_ns", "tpot"},
      Form{"result_mean_latency_ns", "result_", "_percentile_latency_ns", "e2el"}};
  for (const Form& form : kForms) {
    const auto add = [&](const std::string& statistic, double ns) {
      run.values.emplace_back(fmt::format("{}_{}_ms", statistic, form.name), ns / 1e6);
    };
    if (const auto mean = in.number(form.mean)) add("mean", *mean);
    for (const auto& [percentile, statistic] : {std::pair{"50.00", "median"},
                                                {"90.00", "p90"},
                                                {"95.00", "p95"},
                                                {"97.00", "p97"},
                                                {"99.00", "p99"},
                                                {"99.90", "p99.9"}}) {
      if (const auto ns = in.number(form.before + std::string(percentile) + form.after)) add(statistic, *ns);
    }
  }
}

}  // namespace

BenchRun read_loadgen_run(const std::string& path, std::string_view text) {
  const nlohmann::ordered_json values = values_of(path, text);
  const BenchReader in(values, SourceLocation{path, 0, 0}, "MLPerf LoadGen");
  if (in.at("result_validity") == nullptr)
    in.fail("the log ends before its results ('result_validity'): did the run finish, in performance mode?");
  BenchRun run;
  run.tool = "MLPerf LoadGen";
  run.completed = in.required("generated_query_count") * in.number("generated_samples_per_query").value_or(1);
  if (const auto queries = in.number("result_query_count");
      queries && in.number("generated_samples_per_query").value_or(1) == 1)
    run.completed = *queries;
  double per_s = 0, tokens_per_s = 0;
  if (const auto offline = in.number("result_samples_per_second")) {
    per_s = *offline;
    tokens_per_s = in.number("result_tokens_per_second").value_or(0);
    run.duration_s = per_s > 0 ? run.completed / per_s : 0;
    run.unlimited_rate = true;
    run.output_tokens = tokens_per_s * run.duration_s;
  } else if (const auto server = in.number("result_completed_samples_per_sec")) {
    // Rates exclude the first sample, which starts the interval. Token rates divide by the time of the last send.
    const double sent_per_s = in.required("result_scheduled_samples_per_sec");
    per_s = *server;
    run.duration_s = per_s > 0 ? (run.completed - 1) / per_s : 0;
    run.request_rate = sent_per_s;
    run.output_tokens = sent_per_s > 0 ? in.number("result_token_throughput_with_loadgen_overhead").value_or(0) *
                                             (run.completed - 1) / sent_per_s
                                       : 0;
  } else {
    per_s = in.required("result_qps_with_loadgen_overhead");
    run.duration_s = per_s > 0 ? run.completed / per_s : 0;
    run.max_concurrency = 1, run.unlimited_rate = true;
    run.output_tokens = in.number("result_token_throughput_with_loadgen_overhead").value_or(0) * run.duration_s;
  }
  if (run.request_rate == 0.0) run.request_rate.reset();
  run.values.emplace_back("request_throughput", per_s);
  if (run.duration_s > 0 && run.output_tokens > 0)
    run.values.emplace_back("output_throughput", run.output_tokens / run.duration_s);
  read_latencies(in, run);
  if (in.text("result_validity") == "INVALID") run.doubts.push_back("LoadGen calls the run INVALID");
  return run;
}

}  // namespace roofcast
