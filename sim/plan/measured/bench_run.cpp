#include "sim/plan/measured/bench_run.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_file.h"
#include "base/number_text.h"

namespace roofcast {
namespace {

using Json = nlohmann::ordered_json;

/// Load generators send thousands; a comparison of a million takes the better part of a minute.
constexpr double kMostRequests = 1e6;

constexpr std::array<std::pair<std::string_view, LatencyKey::Latency>, 4> kLatencies{
    {{"ttft", LatencyKey::Latency::kTtft},
     {"tpot", LatencyKey::Latency::kTpot},
     {"itl", LatencyKey::Latency::kItl},
     {"e2el", LatencyKey::Latency::kE2el}}};

/// Typed access to one result; what is wrong is named with the file and the key.
class BenchReader {
 public:
  BenchReader(const Json& json, std::string path, std::string_view tool)
      : json_(json), path_(std::move(path)), tool_(tool) {}

  const Json* at(std::string_view key) const {
    const auto found = json_.find(std::string(key));
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  std::optional<double> number(std::string_view key) const {
    const Json* value = at(key);
    return value == nullptr ? std::nullopt : std::optional(checked(*value, key));
  }
  double required(std::string_view key) const {
    if (const auto value = number(key)) return *value;
    if (json_.contains(std::string(key))) fail(fmt::format("'{}' must be a number, got null", key));
    fail(fmt::format("missing key '{}' of a result of {}", key, tool_));
  }
  std::string text(std::string_view key) const {
    const Json* value = at(key);
    return value != nullptr && value->is_string() ? value->get<std::string>() : "";
  }
  double checked(const Json& value, std::string_view key) const {
    if (value.is_number()) {
      const double number = value.get<double>();
      if (std::isfinite(number) && number >= 0) return number;
    }
    std::string got = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (got.size() > 40) got = got.substr(0, 40) + " ...";
    fail(fmt::format("'{}' must be a number from 0 up, got {}", key, got));
  }
  std::vector<int> lengths(std::string_view key) const {
    std::vector<int> out;
    const Json* list = at(key);
    if (list == nullptr) return out;
    if (!list->is_array()) fail(fmt::format("'{}' must be a list of token counts", key));
    for (const Json& item : *list) {
      const double tokens = checked(item, key);
      if (tokens > 1e7) fail(fmt::format("'{}' holds {} tokens, more than 1e7", key, tokens));
      if (tokens >= 1) out.push_back(static_cast<int>(tokens));
    }
    return out;
  }
  [[noreturn]] void fail(const std::string& message) const { throw ConfigError(Mark{path_, 0, 0}, message); }

 private:
  const Json& json_;
  std::string path_;
  std::string tool_;
};

/// SGLang's words for what vLLM calls otherwise.
std::string vllm_key(const std::string& key) {
  if (key == "total_throughput") return "total_token_throughput";
  const auto at = key.find("_e2e_latency_ms");
  return at == std::string::npos ? key : key.substr(0, at) + "_e2el_ms";
}

void read_rate(const BenchReader& in, BenchRun& run) {
  const Json* rate = in.at("request_rate");
  if (rate == nullptr) return;
  const bool word = rate->is_string() && (rate->get<std::string>() == "inf" || rate->get<std::string>() == "Infinity");
  if (word) {
    run.unlimited_rate = true;
  } else {
    run.request_rate = in.checked(*rate, "request_rate");
    if (*run.request_rate == 0) in.fail("'request_rate' must be more than 0");
  }
}

/// vLLM and SGLang: flat keys.
void read_flat(const Json& json, const BenchReader& in, BenchRun& run) {
  run.model = in.text("model_id");
  run.num_prompts = in.number("num_prompts");
  run.max_concurrency = in.number("max_concurrency");
  run.burstiness = in.number("burstiness");
  read_rate(in, run);
  run.completed = in.required("completed");
  run.failed = in.number("failed").value_or(std::max(0.0, run.num_prompts.value_or(0) - run.completed));
  run.duration_s = in.required("duration");
  run.input_tokens = in.required("total_input_tokens");
  run.output_tokens = in.required("total_output_tokens");
  run.prompt_lengths = in.lengths("input_lens");
  run.output_lengths = in.lengths("output_lens");
  for (const char* key :
       {"request_throughput", "request_goodput", "output_throughput", "total_token_throughput", "total_throughput"}) {
    if (const auto value = in.number(key)) run.values.emplace_back(vllm_key(key), *value);
  }
  for (const auto& [key, value] : json.items()) {
    if (parse_latency_key(vllm_key(key))) run.values.emplace_back(vllm_key(key), in.checked(value, key));
  }
}

/// One of AIPerf's metrics: a block {unit, avg, p50, ...}; times come out in milliseconds, durations in seconds.
std::optional<double> block_value(const BenchReader& in, std::string_view metric, std::string_view statistic) {
  const Json* block = in.at(metric);
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

void read_aiperf_latencies(const BenchReader& in, BenchRun& run) {
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

/// The load that AIPerf was told to make: `loadgen` up to schema 1.1, `phases` later. Not part of its stable schema,
/// so what is not there is not checked.
void read_aiperf_load(const BenchReader& in, BenchRun& run) {
  const Json* config = in.at("input_config");
  if (config == nullptr || !config->is_object()) return;
  const auto number = [&](const char* pointer) -> std::optional<double> {
    const Json::json_pointer at(pointer);
    if (!config->contains(at) || !config->at(at).is_number()) return std::nullopt;
    return in.checked(config->at(at), std::string("input_config") + pointer);
  };
  for (const std::string base : {"/loadgen", "/phases/profiling", "/phases/0"}) {
    if (!run.max_concurrency) run.max_concurrency = number((base + "/concurrency").c_str());
    if (!run.request_rate) run.request_rate = number((base + "/request_rate").c_str());
  }
  if (run.request_rate == 0.0) run.request_rate.reset();
  run.unlimited_rate = !run.request_rate && run.max_concurrency.has_value();
  const Json::json_pointer names("/endpoint/model_names/0");
  if (config->contains(names) && config->at(names).is_string()) run.model = config->at(names).get<std::string>();
}

void read_aiperf(const BenchReader& in, BenchRun& run) {
  const auto required = [&](std::string_view metric) {
    if (const auto value = block_value(in, metric, "avg")) return *value;
    in.fail(fmt::format("missing '{}.avg' of a result of AIPerf", metric));
  };
  const auto total = [&](std::string_view sum, std::string_view other, std::string_view each) {
    for (std::string_view metric : {sum, other}) {
      if (const auto value = block_value(in, metric, "avg")) return *value;
    }
    return required(each) * run.completed;
  };
  run.completed = required("request_count");
  run.failed = block_value(in, "error_request_count", "avg").value_or(0);
  run.duration_s = required("benchmark_duration");
  run.input_tokens = total("total_isl", "total_input_sequence_length", "input_sequence_length");
  run.output_tokens = total("total_osl", "total_output_tokens", "output_sequence_length");
  read_aiperf_load(in, run);
  for (const auto& [metric, key] : {std::pair{"request_throughput", "request_throughput"},
                                    {"output_token_throughput", "output_throughput"},
                                    {"total_token_throughput", "total_token_throughput"}}) {
    if (const auto value = block_value(in, metric, "avg")) run.values.emplace_back(key, *value);
  }
  read_aiperf_latencies(in, run);
}

}  // namespace

std::optional<LatencyKey> parse_latency_key(std::string_view key) {
  const auto bar = key.find('_');
  if (bar == std::string_view::npos || !key.ends_with("_ms") || key.size() < bar + 5) return std::nullopt;
  const std::string_view statistic = key.substr(0, bar), latency = key.substr(bar + 1, key.size() - bar - 4);
  LatencyKey out;
  const auto* found = kLatencies.begin();
  while (found != kLatencies.end() && found->first != latency) ++found;
  if (found == kLatencies.end()) return std::nullopt;
  out.latency = found->second;
  if (statistic == "mean") return out;
  out.statistic = statistic == "std" ? LatencyKey::Statistic::kStandardDeviation : LatencyKey::Statistic::kPercentile;
  if (statistic == "std" || statistic == "median") return out;
  const bool number = statistic.starts_with('p') &&
                      parse_number(statistic.substr(1), out.percentile) == NumberFault::kNone && out.percentile >= 0 &&
                      out.percentile <= 100;
  return number ? std::optional(out) : std::nullopt;
}

std::optional<double> BenchRun::value(std::string_view key) const {
  for (const auto& [name, number] : values) {
    if (name == key) return number;
  }
  return std::nullopt;
}

std::optional<double> BenchRun::mean_in_flight() const {
  const auto latency = value("mean_e2el_ms");
  if (latency) return completed * *latency / 1e3 / duration_s;
  const auto ttft = value("mean_ttft_ms"), tpot = value("mean_tpot_ms");
  if (!ttft || !tpot) return std::nullopt;
  return completed / duration_s * (*ttft + *tpot * std::max(0.0, mean_output() - 1)) / 1e3;
}

BenchRun read_bench_run(const std::string& path) {
  const Json json = read_json(path, "the JSON of vllm bench serve or AIPerf");
  if (!json.is_object()) throw ConfigError(Mark{path, 0, 0}, "expected the JSON of vllm bench serve or AIPerf, a map");
  BenchRun run;
  run.path = path;
  const auto metric = json.find("request_latency");
  const bool aiperf = json.contains("aiperf_version") || json.contains("time_to_first_token") ||
                      (metric != json.end() && metric->is_object());
  const bool sglang = json.contains("total_throughput") || json.contains("mean_e2e_latency_ms");
  run.tool = aiperf ? "AIPerf" : sglang ? "SGLang bench_serving" : "vllm bench serve";
  const BenchReader in(json, path, run.tool);
  if (aiperf) {
    read_aiperf(in, run);
  } else {
    read_flat(json, in, run);
  }
  if (!(std::max(run.requests(), run.completed) <= kMostRequests))
    in.fail(fmt::format("a run of {:.4g} requests; it is simulated many times over, so at most {:.0f} are read",
                        std::max(run.requests(), run.completed), kMostRequests));
  if (run.completed == 0) in.fail("the run completed no request: there is nothing to compare");
  if (run.duration_s <= 0) in.fail("the run's duration must be more than 0");
  if (run.input_tokens <= 0 || run.output_tokens <= 0) in.fail("the run has no tokens in or none out");
  if (!run.value("mean_ttft_ms") && !run.value("median_ttft_ms") && !run.value("mean_tpot_ms") &&
      !run.value("median_tpot_ms") && !run.value("mean_e2el_ms"))
    in.fail("none of mean_ttft_ms, median_ttft_ms, mean_tpot_ms, median_tpot_ms, mean_e2el_ms is there");
  return run;
}

std::optional<double> predicted_value(const ServingMetrics& m, std::string_view key) {
  const double seconds = m.duration.base();
  if (key == "request_throughput") return static_cast<double>(m.completed) / seconds;
  if (key == "request_goodput") return m.good_requests / seconds;
  if (key == "output_throughput") return m.output_tokens / seconds;
  if (key == "total_token_throughput") return (m.input_tokens + m.output_tokens) / seconds;
  const auto latency = parse_latency_key(key);
  if (!latency) return std::nullopt;
  const std::array<const Distribution*, 4> all{&m.ttft_ms, &m.tpot_ms, &m.itl_ms, &m.e2el_ms};
  const Distribution& d = *all[static_cast<std::size_t>(latency->latency)];
  if (latency->statistic == LatencyKey::Statistic::kMean) return d.mean();
  if (latency->statistic == LatencyKey::Statistic::kStandardDeviation) return d.stddev();
  return d.percentile(latency->percentile);
}

}  // namespace roofcast
