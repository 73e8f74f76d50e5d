// GuideLLM: one report, a benchmark for each rate of its profile.

#include <array>

#include <fmt/format.h>

#include "sim/plan/measured/bench_reader.h"

namespace roofcast {
namespace {

/// Key of a metric's distribution over successful requests.
std::string successful(std::string_view metric) { return fmt::format("/metrics/{}/successful", metric); }

/// GuideLLM's time_per_output_token_ms holds the first token too; its inter_token_latency_ms is a request's time after
/// the first token, per token: TPOT. Request latencies are in seconds.
struct Latency {
  const char *metric, *name;
  double to_ms;
};
constexpr std::array kLatencies{Latency{"time_to_first_token_ms", "ttft", 1},
                                Latency{"inter_token_latency_ms", "tpot", 1}, Latency{"request_latency", "e2el", 1e3}};

/// Keys below `successful`; p001 is the 0.1th percentile.
constexpr std::array<std::pair<const char*, const char*>, 12> kStatistics{{{"/mean", "mean"},
                                                                           {"/median", "median"},
                                                                           {"/std_dev", "std"},
                                                                           {"/percentiles/p01", "p1"},
                                                                           {"/percentiles/p05", "p5"},
                                                                           {"/percentiles/p10", "p10"},
                                                                           {"/percentiles/p25", "p25"},
                                                                           {"/percentiles/p75", "p75"},
                                                                           {"/percentiles/p90", "p90"},
                                                                           {"/percentiles/p95", "p95"},
                                                                           {"/percentiles/p99", "p99"},
                                                                           {"/percentiles/p999", "p99.9"}}};

/// The strategy that sent the requests: `config` since release 0.4, `args` before.
void read_load(const BenchReader& in, BenchRun& run) {
  std::string base = "/config/strategy/";
  if (in.at("/config/strategy") == nullptr) base = "/args/strategy/";
  std::string kind = in.text(base + "type_");
  if (kind.empty()) kind = in.text(base + "kind");
  const auto rate = in.number(base + "rate");
  if (kind == "synchronous") run.max_concurrency = 1;
  if (!run.max_concurrency) run.max_concurrency = in.number(base + "streams");
  if (!run.max_concurrency) run.max_concurrency = in.number(base + "max_concurrency");
  if (rate && *rate > 0 && (kind == "constant" || kind == "poisson")) {
    run.request_rate = rate;
    run.constant_rate = kind == "constant";
  } else {
    run.unlimited_rate = kind == "throughput" || run.max_concurrency.has_value();
  }
}

/// Lengths per request, if all are stored: later releases store a sample of twenty.
void read_lengths(const BenchReader& in, BenchRun& run) {
  const auto* requests = in.at("/requests/successful");
  if (requests == nullptr || !requests->is_array() || static_cast<double>(requests->size()) != run.completed) return;
  for (const auto& request : *requests) {
    if (!request.is_object()) return;
    const BenchReader one(request, in.location(), "GuideLLM");
    const auto prompt = one.number("prompt_tokens"), output = one.number("output_tokens");
    if (prompt && *prompt >= 1 && *prompt <= 1e7) run.prompt_lengths.push_back(static_cast<int>(*prompt));
    if (output && *output >= 1 && *output <= 1e7) run.output_lengths.push_back(static_cast<int>(*output));
  }
}

}  // namespace

BenchRun read_guidellm_run(const BenchReader& in, const BenchReader& report) {
  BenchRun run;
  run.tool = "GuideLLM";
  for (const char* place : {"/args/model", "/config/backend/model", "/worker/backend_model"}) {
    if (run.model.empty()) run.model = report.text(place);
    if (run.model.empty()) run.model = in.text(place);
  }
  const auto completed =
      in.first_number({"/metrics/request_totals/successful", "/request_totals/successful",
                       "/scheduler_metrics/requests_made/successful", "/metrics/request_latency/successful/count"});
  if (!completed) in.fail("missing 'metrics.request_totals.successful' of a GuideLLM benchmark");
  run.completed = *completed;
  run.failed = in.first_number({"/metrics/request_totals/errored", "/request_totals/errored",
                                "/scheduler_metrics/requests_made/errored"})
                   .value_or(0);
  const auto begin = in.number("start_time"), end = in.number("end_time");
  run.duration_s = in.number("duration").value_or(begin && end ? *end - *begin : 0);
  if (run.completed > 0 && run.duration_s <= 0) in.fail("the benchmark's 'duration' must be more than 0");
  const auto tokens = [&](const char* metric) {
    const std::string place = successful(metric);
    if (const auto mean = in.number(place + "/mean")) return *mean * run.completed;
    in.fail(fmt::format("missing 'metrics.{}.successful.mean' of a GuideLLM benchmark", metric));
  };
  if (run.completed > 0) {
    run.input_tokens = tokens("prompt_token_count");
    run.output_tokens = tokens("output_token_count");
  }
  read_load(in, run);
  read_lengths(in, run);
  for (const auto& [metric, key] : {std::pair{"requests_per_second", "request_throughput"},
                                    {"output_tokens_per_second", "output_throughput"},
                                    {"tokens_per_second", "total_token_throughput"}}) {
    if (const auto value = in.number(successful(metric) + "/mean")) run.values.emplace_back(key, *value);
  }
  for (const Latency& latency : kLatencies) {
    for (const auto& [place, statistic] : kStatistics) {
      if (const auto value = in.number(successful(latency.metric) + place))
        run.values.emplace_back(fmt::format("{}_{}_ms", statistic, latency.name), *value * latency.to_ms);
    }
  }
  return run;
}

}  // namespace roofcast
