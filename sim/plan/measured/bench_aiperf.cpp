// AIPerf and its predecessor GenAI-Perf: a block {unit, avg, p50, ...} per metric.

#include <array>

#include <fmt/format.h>

#include "sim/plan/measured/bench_reader.h"

namespace roofcast {
namespace {

/// One statistic of a metric: latencies in milliseconds, durations in seconds.
std::optional<double> block_value(const BenchReader& in, std::string_view metric, std::string_view statistic) {
  const auto* block = in.at(metric);
  if (block == nullptr) return std::nullopt;
  if (!block->is_object()) in.fail(fmt::format("'{}' must be a map with 'unit' and 'avg'", metric));
  const auto found = block->find(std::string(statistic));
  if (found == block->end() || found->is_null()) return std::nullopt;
  const double value = in.checked(*found, fmt::format("{}.{}", metric, statistic));
  const auto unit = block->find("unit");
  const std::string text = unit != block->end() && unit->is_string() ? unit->get<std::string>() : "ms";
  if (metric == "benchmark_duration") return text == "ms" ? value / 1e3 : value;
  const bool seconds = text == "s" || text == "sec" || text == "seconds";
  return seconds ? value * 1e3 : text == "us" ? value / 1e3 : text == "ns" ? value / 1e6 : value;
}

void read_latencies(const BenchReader& in, BenchRun& run) {
  static constexpr std::array<std::pair<const char*, const char*>, 4> kNames{{{"time_to_first_token", "ttft"},
                                                                              {"inter_token_latency", "tpot"},
                                                                              {"inter_chunk_latency", "itl"},
                                                                              {"request_latency", "e2el"}}};
  static constexpr std::array<std::pair<const char*, const char*>, 8> kStatistics{{{"avg", "mean"},
                                                                                   {"p50", "median"},
                                                                                   {"std", "std"},
                                                                                   {"p25", "p25"},
                                                                                   {"p75", "p75"},
                                                                                   {"p90", "p90"},
                                                                                   {"p95", "p95"},
                                                                                   {"p99", "p99"}}};
  for (const auto& [metric, name] : kNames) {
    for (const auto& [statistic, prefix] : kStatistics) {
      if (const auto value = block_value(in, metric, statistic))
        run.values.emplace_back(fmt::format("{}_{}_ms", prefix, name), *value);
    }
  }
}

/// The configured load: AIPerf's `loadgen` up to schema 1.1, `phases` later; GenAI-Perf's stimulus, or the flat
/// arguments of older releases. The schema is not stable, so missing keys are ignored.
void read_load(const BenchReader& in, BenchRun& run) {
  const auto number = [&](const std::string& place) -> std::optional<double> {
    const auto* value = in.at("/input_config" + place);
    return value != nullptr && value->is_number() ? std::optional(in.checked(*value, "input_config" + place))
                                                  : std::nullopt;
  };
  for (const std::string base : {"/loadgen", "/phases/profiling", "/phases/0", "/perf_analyzer/stimulus", ""}) {
    if (!run.max_concurrency) run.max_concurrency = number(base + "/concurrency");
    if (!run.request_rate) run.request_rate = number(base + "/request_rate");
  }
  if (run.request_rate == 0.0) run.request_rate.reset();
  run.unlimited_rate = !run.request_rate && run.max_concurrency.has_value();
  for (const char* place : {"/input_config/endpoint/model_names/0", "/input_config/model_names/0",
                            "/input_config/model/0", "/input_config/formatted_model_name"}) {
    if (run.model.empty()) run.model = in.text(place);
  }
}

}  // namespace

BenchRun read_aiperf_run(const BenchReader& in, std::string_view tool) {
  BenchRun run;
  run.tool = tool;
  const auto required = [&](std::string_view metric) {
    if (const auto value = block_value(in, metric, "avg")) return *value;
    in.fail(fmt::format("missing '{}.avg' of a result of {}", metric, tool));
  };
  const auto total = [&](std::string_view sum, std::string_view other, std::string_view each) {
    for (std::string_view metric : {sum, other}) {
      if (const auto value = block_value(in, metric, "avg")) return *value;
    }
    return required(each) * run.completed;
  };
  run.completed = required("request_count");
  run.failed = block_value(in, "error_request_count", "avg").value_or(0);
  if (const auto duration = block_value(in, "benchmark_duration", "avg")) {
    run.duration_s = *duration;
  } else if (const double rate = required("request_throughput"); rate > 0) {
    run.duration_s = run.completed / rate;
  }
  if (run.completed > 0 && run.duration_s <= 0) in.fail("the run's duration must be more than 0");
  run.input_tokens = total("total_isl", "total_input_sequence_length", "input_sequence_length");
  run.output_tokens = total("total_osl", "total_output_tokens", "output_sequence_length");
  read_load(in, run);
  for (const auto& [metric, key] : {std::pair{"request_throughput", "request_throughput"},
                                    {"output_token_throughput", "output_throughput"},
                                    {"total_token_throughput", "total_token_throughput"}}) {
    if (const auto value = block_value(in, metric, "avg")) run.values.emplace_back(key, *value);
  }
  read_latencies(in, run);
  return run;
}

}  // namespace roofcast
