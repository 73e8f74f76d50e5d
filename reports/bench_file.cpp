#include "reports/bench_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "sim/step/deployment.h"

namespace roofcast::reports {
namespace {

using Json = nlohmann::ordered_json;
using Process = ArrivalSpec::Process;

struct Latency {
  const char* name;
  const Distribution* values;
};
std::array<Latency, 4> latencies(const ServingMetrics& m) {
  return {{{"ttft", &m.ttft_ms}, {"tpot", &m.tpot_ms}, {"itl", &m.itl_ms}, {"e2el", &m.e2el_ms}}};
}

/// The client's setting: a request rate, or the number of requests in flight.
struct Load {
  std::optional<double> rate, burstiness, concurrency;
  bool constant = false;  ///< equal gaps (infinite burstiness in vLLM)
  explicit Load(const WorkloadSpec& w) {
    const ArrivalSpec& a = w.arrivals;
    if (a.process == Process::kClosedLoop) concurrency = a.concurrency;
    if (a.rate.base() <= 0) return;
    rate = a.rate.base();
    constant = a.process == Process::kConstant;
    burstiness = a.process == Process::kGamma ? 1 / (a.cv * a.cv) : 1.0;
  }
};

Json optional_json(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

double per_second(double count, const ServingMetrics& m) { return count / std::max(m.duration.base(), 1e-12); }

void add_latencies(Json& out, const ServingMetrics& m, const char* e2el, const char* unit_end) {
  for (const Latency& l : latencies(m)) {
    const std::string name = (std::string_view(l.name) == "e2el" ? e2el : l.name) + std::string(unit_end);
    out["mean_" + name] = l.values->mean();
    out["median_" + name] = l.values->percentile(50);
    out["std_" + name] = l.values->stddev();
    for (const double p : {90.0, 95.0, 99.0}) out[fmt::format("p{:.0f}_{}", p, name)] = l.values->percentile(p);
  }
}

std::string vllm_text(const ServingMetrics& m, const Scenario& s) {
  const Load load(*s.workload);
  Json out;
  out["backend"] = s.deployment->engine.name;
  out["model_id"] = s.deployment->model.name;
  out["num_prompts"] = m.completed + m.failed;
  out["request_rate"] = load.rate ? Json(*load.rate) : Json("inf");
  out["burstiness"] = load.constant ? Json("inf") : Json(load.burstiness.value_or(1.0));
  out["max_concurrency"] = optional_json(load.concurrency);
  out["duration"] = m.duration.base();
  out["completed"] = m.completed;
  out["failed"] = m.failed;
  out["total_input_tokens"] = m.input_tokens;
  out["total_output_tokens"] = m.output_tokens;
  out["request_throughput"] = per_second(static_cast<double>(m.completed), m);
  out["output_throughput"] = per_second(m.output_tokens, m);
  out["total_token_throughput"] = per_second(m.input_tokens + m.output_tokens, m);
  add_latencies(out, m, "e2el", "_ms");
  return out.dump(2) + "\n";
}

/// One line, as bench_serving appends it.
std::string sglang_text(const ServingMetrics& m, const Scenario& s) {
  const Load load(*s.workload);
  Json out;
  out["backend"] = s.deployment->engine.name;
  out["request_rate"] = load.rate ? Json(*load.rate) : Json("inf");
  out["max_concurrency"] = optional_json(load.concurrency);
  out["duration"] = m.duration.base();
  out["completed"] = m.completed;
  out["total_input_tokens"] = m.input_tokens;
  out["total_output_tokens"] = m.output_tokens;
  out["request_throughput"] = per_second(static_cast<double>(m.completed), m);
  out["input_throughput"] = per_second(m.input_tokens, m);
  out["output_throughput"] = per_second(m.output_tokens, m);
  out["total_throughput"] = per_second(m.input_tokens + m.output_tokens, m);
  add_latencies(out, m, "e2e_latency", "_ms");
  out["server_info"] = {{"model_path", s.deployment->model.name}};
  return out.dump() + "\n";
}

/// Adds min, max, std and percentiles to a block of AIPerf's and GenAI-Perf's.
void add_statistics(Json& metric, const Distribution& d) {
  metric["min"] = d.min(), metric["max"] = d.max(), metric["std"] = d.stddev();
  for (const double p : {25.0, 50.0, 75.0, 90.0, 95.0, 99.0}) metric[fmt::format("p{:.0f}", p)] = d.percentile(p);
}

Json block(const char* unit, double value) { return {{"unit", unit}, {"avg", value}}; }

std::string aiperf_text(const ServingMetrics& m, const Scenario& s) {
  constexpr std::array kNames{"time_to_first_token", "inter_token_latency", "inter_chunk_latency", "request_latency"};
  const Load load(*s.workload);
  const double n = static_cast<double>(m.completed);
  Json out;
  out["schema_version"] = "1.1";
  out["request_throughput"] = block("requests/sec", per_second(n, m));
  out["request_count"] = block("requests", n);
  out["error_request_count"] = block("requests", static_cast<double>(m.failed));
  out["output_token_throughput"] = block("tokens/sec", per_second(m.output_tokens, m));
  out["total_token_throughput"] = block("tokens/sec", per_second(m.input_tokens + m.output_tokens, m));
  out["input_sequence_length"] = block("tokens", n > 0 ? m.input_tokens / n : 0);
  out["output_sequence_length"] = block("tokens", n > 0 ? m.output_tokens / n : 0);
  out["total_isl"] = block("tokens", m.input_tokens);
  out["total_osl"] = block("tokens", m.output_tokens);
  out["benchmark_duration"] = block("sec", m.duration.base());
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const Distribution& d = *latencies(m)[i].values;
    add_statistics(out[kNames[i]] = block("ms", d.mean()), d);
  }
  Json& config = out["input_config"];
  config["endpoint"]["model_names"] = {s.deployment->model.name};
  if (load.rate) config["loadgen"]["request_rate"] = *load.rate;
  if (load.concurrency) config["loadgen"]["concurrency"] = *load.concurrency;
  return out.dump(2) + "\n";
}

/// GenAI-Perf's inter_token_latency is TPOT. It reports neither chunks, total tokens nor errors.
std::string genai_perf_text(const ServingMetrics& m, const Scenario& s) {
  const Load load(*s.workload);
  const double n = static_cast<double>(m.completed);
  Json out;
  out["request_throughput"] = block("requests/sec", per_second(n, m));
  for (const auto& [name, values] : {std::pair{"request_latency", &m.e2el_ms},
                                     {"time_to_first_token", &m.ttft_ms},
                                     {"inter_token_latency", &m.tpot_ms}})
    add_statistics(out[name] = block("ms", values->mean()), *values);
  out["request_count"] = block("requests", n);
  out["output_token_throughput"] = block("tokens/sec", per_second(m.output_tokens, m));
  out["output_sequence_length"] = block("tokens", n > 0 ? m.output_tokens / n : 0);
  out["input_sequence_length"] = block("tokens", n > 0 ? m.input_tokens / n : 0);
  Json& config = out["input_config"];
  config["model"] = {s.deployment->model.name};
  Json& stimulus = config["perf_analyzer"]["stimulus"] = Json::object();
  if (load.rate) stimulus["request_rate"] = *load.rate;
  if (load.concurrency) stimulus["concurrency"] = *load.concurrency;
  return out.dump(2) + "\n";
}

/// LoadGen sends at a rate (server), all at once (offline), or one query after another (single stream).
enum class LoadgenScenario { kServer, kOffline, kSingleStream };
LoadgenScenario loadgen_scenario(const Scenario& s) {
  const Load load(*s.workload);
  if (load.rate) return LoadgenScenario::kServer;
  if (!load.concurrency) return LoadgenScenario::kOffline;
  if (*load.concurrency == 1) return LoadgenScenario::kSingleStream;
  throw ConfigError(
      fmt::format("--bench-format: LoadGen has no closed loop of {:.0f} clients; it sends at a rate, all at "
                  "once, or with concurrency 1",
                  *load.concurrency));
}
void check_loadgen(const Scenario& s) { (void)loadgen_scenario(s); }

/// The results in mlperf_log_detail.txt. Rates of the server scenario exclude the first query, which starts the
/// interval. Token rates divide by the time of the last send.
std::string loadgen_text(const ServingMetrics& m, const Scenario& s) {
  std::string out;
  const auto line = [&](const std::string& key, const Json& value) {
    const Json entry{{"key", key},
                     {"value", value},
                     {"time_ms", m.duration.in(kMillisecond)},
                     {"namespace", "mlperf::logging"},
                     {"event_type", "POINT_IN_TIME"},
                     {"metadata", {{"is_error", false}, {"is_warning", false}}}};
    out += ":::MLLOG " + entry.dump() + "\n";
  };
  const double n = static_cast<double>(m.completed), intervals = std::max(n - 1, 1.0);
  line("generated_query_count", m.completed);
  line("generated_samples_per_query", 1);
  line("result_query_count", m.completed);
  line("result_validity", m.failed == 0 ? "VALID" : "INVALID");
  switch (loadgen_scenario(s)) {
    case LoadgenScenario::kServer: {
      const double sent = s.workload->arrivals.rate.base();
      line("effective_scenario", "Server");
      line("result_scheduled_samples_per_sec", sent);
      line("result_completed_samples_per_sec", per_second(intervals, m));
      line("result_token_throughput_with_loadgen_overhead", m.output_tokens * sent / intervals);
      break;
    }
    case LoadgenScenario::kOffline:
      line("effective_scenario", "Offline");
      line("result_samples_per_second", per_second(n, m));
      line("result_tokens_per_second", per_second(m.output_tokens, m));
      break;
    case LoadgenScenario::kSingleStream:
      line("effective_scenario", "SingleStream");
      line("result_qps_with_loadgen_overhead", per_second(n, m));
      line("result_token_throughput_with_loadgen_overhead", per_second(m.output_tokens, m));
      break;
  }
  const auto nanoseconds = [](double ms) { return std::llround(ms * 1e6); };
  for (const auto& [mean, before, after, values] :
       {std::tuple{"result_first_token_mean_latency_ns", "result_first_token_", "_percentile_latency_ns", &m.ttft_ms},
        {"result_time_to_output_token_mean", "result_time_per_output_token_", "_percentile_ns", &m.tpot_ms},
        {"result_mean_latency_ns", "result_", "_percentile_latency_ns", &m.e2el_ms}}) {
    line(mean, nanoseconds(values->mean()));
    for (const double p : {50.0, 90.0, 95.0, 97.0, 99.0, 99.9})
      line(fmt::format("{}{:.2f}{}", before, p, after), nanoseconds(values->percentile(p)));
  }
  return out;
}

void check_llama_bench(const Scenario& s) {
  const Load load(*s.workload);
  if (load.concurrency != 1.0)
    throw ConfigError(
        "--bench-format: llama-bench measures one user; the workload needs 'arrivals: {process: closed_loop, "
        "concurrency: 1}'");
}

/// `llama-bench -o json`: one test with the mean prompt, one with the mean output after it.
std::string llama_bench_text(const ServingMetrics& m, const Scenario& s) {
  check_llama_bench(s);
  const double n = std::max<double>(1, static_cast<double>(m.completed));
  const auto prompt = std::llround(m.input_tokens / n), output = std::llround(m.output_tokens / n);
  Json out = Json::array();
  const auto test = [&](long long n_prompt, long long n_gen, long long depth, double tokens_per_s) {
    if (n_prompt + n_gen == 0 || !(tokens_per_s > 0)) return;
    const double ns = static_cast<double>(n_prompt + n_gen) / tokens_per_s * 1e9;
    out.push_back({{"model_filename", s.deployment->model.name},
                   {"model_type", s.deployment->model.name},
                   {"n_prompt", n_prompt},
                   {"n_gen", n_gen},
                   {"n_depth", depth},
                   {"avg_ns", std::llround(ns)},
                   {"avg_ts", tokens_per_s}});
  };
  const auto rate = [](double tokens, double ms) { return ms > 0 ? tokens / ms * 1e3 : 0.0; };
  test(prompt, 0, 0, rate(m.input_tokens / n, m.ttft_ms.mean()));
  test(0, output, prompt, rate(1, m.tpot_ms.mean()));
  return out.dump(2) + "\n";
}

Json successful(double mean, double count) { return {{"successful", {{"mean", mean}, {"count", count}}}}; }

Json distribution(const Distribution& d, double factor) {
  Json percentiles;
  for (const auto& [key, p] : {std::pair{"p01", 1.0},
                               {"p05", 5.0},
                               {"p10", 10.0},
                               {"p25", 25.0},
                               {"p50", 50.0},
                               {"p75", 75.0},
                               {"p90", 90.0},
                               {"p95", 95.0},
                               {"p99", 99.0},
                               {"p999", 99.9}})
    percentiles[key] = factor * d.percentile(p);
  return {{"successful",
           {{"mean", factor * d.mean()},
            {"median", factor * d.percentile(50)},
            {"std_dev", factor * d.stddev()},
            {"min", factor * d.min()},
            {"max", factor * d.max()},
            {"count", d.count()},
            {"percentiles", percentiles}}}};
}

/// The measurements of a report. Its inter_token_latency_ms is TPOT; its latencies are in seconds.
std::string guidellm_text(const ServingMetrics& m, const Scenario& s) {
  const Load load(*s.workload);
  const double n = static_cast<double>(m.completed);
  Json benchmark;
  Json& strategy = benchmark["config"]["strategy"];
  const bool constant = s.workload->arrivals.process == Process::kConstant;
  strategy["type_"] = load.rate ? (constant ? "constant" : "poisson") : load.concurrency ? "concurrent" : "throughput";
  if (load.rate) strategy["rate"] = *load.rate;
  if (load.concurrency) strategy["streams"] = *load.concurrency;
  benchmark["start_time"] = 0.0;
  benchmark["end_time"] = benchmark["duration"] = m.duration.base();
  Json& metrics = benchmark["metrics"];
  metrics["request_totals"] = {
      {"successful", m.completed}, {"incomplete", 0}, {"errored", m.failed}, {"total", m.completed + m.failed}};
  metrics["requests_per_second"] = successful(per_second(n, m), n);
  metrics["output_tokens_per_second"] = successful(per_second(m.output_tokens, m), n);
  metrics["tokens_per_second"] = successful(per_second(m.input_tokens + m.output_tokens, m), n);
  metrics["prompt_token_count"] = successful(n > 0 ? m.input_tokens / n : 0, n);
  metrics["output_token_count"] = successful(n > 0 ? m.output_tokens / n : 0, n);
  metrics["request_latency"] = distribution(m.e2el_ms, 1e-3);
  metrics["time_to_first_token_ms"] = distribution(m.ttft_ms, 1);
  metrics["inter_token_latency_ms"] = distribution(m.tpot_ms, 1);
  const Json report{{"args", {{"model", s.deployment->model.name}}}, {"benchmarks", Json::array({benchmark})}};
  return report.dump(2) + "\n";
}

constexpr std::array kFormats{
    BenchFormat{"vllm", "vllm bench serve --save-result", vllm_text},
    BenchFormat{"sglang", "a line of SGLang bench_serving", sglang_text},
    BenchFormat{"aiperf", "profile_export_aiperf.json", aiperf_text},
    BenchFormat{"genai-perf", "profile_export_genai_perf.json", genai_perf_text},
    BenchFormat{"guidellm", "benchmarks.json of GuideLLM", guidellm_text},
    BenchFormat{"loadgen", "mlperf_log_detail.txt of MLPerf LoadGen", loadgen_text, check_loadgen},
    BenchFormat{"llama-bench", "llama-bench -o json", llama_bench_text, check_llama_bench}};

}  // namespace

const BenchFormat& find_bench_format(const std::string& name, const std::string& origin) {
  std::vector<std::string> names;
  for (const BenchFormat& format : kFormats) {
    if (format.name == name) return format;
    names.emplace_back(format.name);
  }
  throw ConfigError(origin + ": " + unknown_name("format", name, names));
}

}  // namespace roofcast::reports
