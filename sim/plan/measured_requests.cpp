#include "sim/plan/measured_requests.h"

#include <cctype>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/read_file.h"
#include "sim/plan/scenario.h"
#include "sim/serve/simulation.h"

namespace roofcast {
namespace {

using Json = nlohmann::json;
constexpr std::size_t kMostBytes = std::size_t{1} << 30;
constexpr std::string_view kLines = "requests.jsonl", kSettings = "meta.json";

Json parsed(const std::string& text, const std::string& where) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) throw ConfigError(fmt::format("{}: not a JSON object", where));
  return json;
}

double number(const Json& line, const char* key, const std::string& where) {
  const auto at = line.find(key);
  if (at == line.end() || !at->is_number()) throw ConfigError(fmt::format("{}: '{}' must be a number", where, key));
  const double value = at->get<double>();
  if (!std::isfinite(value)) throw ConfigError(fmt::format("{}: '{}' must be finite", where, key));
  return value;
}

int tokens(const Json& line, const char* key, const std::string& where) {
  const double value = number(line, key, where);
  if (value < 1 || value > 1e9 || value != std::floor(value))
    throw ConfigError(fmt::format("{}: '{}' must be a whole number of tokens, 1 or more", where, key));
  return static_cast<int>(value);
}

/// "meta-llama/Llama-3.1-8B-Instruct" -> "llama-3.1-8b": the names of the library have neither owner nor tuning.
std::string library_name(std::string name) {
  name = name.substr(name.rfind('/') + 1);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const std::string_view tuned : {"-hf", "-instruct", "-chat", "-it"}) {
    if (name.ends_with(tuned)) name.resize(name.size() - tuned.size());
  }
  return name;
}

/// The scenario that the engine's settings describe.
std::shared_ptr<const Deployment> deployment_of(const Json& meta, const std::string& where, const std::string& gpu) {
  const auto engine = meta.find("engine_kwargs");
  if (engine == meta.end() || !engine->is_object())
    throw ConfigError(fmt::format("{}: 'engine_kwargs' must be an object", where));
  const auto text = [&](const char* key, const std::string& otherwise) {
    const auto at = engine->find(key);
    return at != engine->end() && at->is_string() ? at->get<std::string>() : otherwise;
  };
  const Mark mark{where, 0, 0};
  std::vector<ConfigNode::Entry> settings{{"name", mark, make_scalar("vllm", mark)}};
  for (const char* key : {"max_num_seqs", "max_num_batched_tokens", "max_model_len", "gpu_memory_utilization"}) {
    const auto at = engine->find(key);
    if (at != engine->end() && at->is_number()) settings.push_back({key, mark, make_scalar(at->dump(), mark)});
  }
  for (const char* key : {"quantization", "speculative_config"}) {
    const auto at = engine->find(key);
    if (at != engine->end() && !at->is_null())
      throw ConfigError(fmt::format("{}: '{}' is not taken from a run's settings yet", where, key));
  }
  // Recorded prompts differ; what few share counts little.
  settings.push_back({"prefix_caching", mark, make_scalar("false", mark)});
  const int tp = engine->contains("tensor_parallel_size") ? tokens(*engine, "tensor_parallel_size", where) : 1;
  if (engine->contains("data_parallel_size") && tokens(*engine, "data_parallel_size", where) > 1)
    throw ConfigError(fmt::format("{}: 'data_parallel_size' above 1 is not taken from a run's settings yet", where));
  const std::string cache = text("kv_cache_dtype", "auto") == "auto" ? "bf16" : "fp8";  // 16 bit are 16 bit
  std::vector<ConfigNode::Entry> scenario{
      {"model", mark, make_scalar(library_name(text("model", "")), mark)},
      {"gpu", mark, make_scalar(gpu, Mark{"--gpu", 0, 0})},
      {"engine", mark, make_map(std::move(settings), mark)},
      {"parallelism", mark, make_map({{"tp", mark, make_scalar(std::to_string(tp), mark)}}, mark)},
      {"precision", mark, make_map({{"kv_cache", mark, make_scalar(cache, mark)}}, mark)}};
  ConfigReader reader(make_map(std::move(scenario), mark), "a measured run");
  return read_deployment(reader, Fidelity::kCalibrated);
}

/// Requests as they were recorded.
class Recorded final : public RequestSource {
 public:
  explicit Recorded(const std::vector<MeasuredRequest>& requests) : requests_(requests) {}
  bool next(Request& request) override {
    if (at_ == requests_.size()) return false;
    const MeasuredRequest& r = requests_[at_];
    request = Request{};
    request.id = static_cast<std::int64_t>(at_++);
    request.arrival = Seconds(r.arrival_s);
    request.prompt_tokens = r.prompt_tokens;
    request.output_tokens = r.output_tokens;
    return true;
  }

 private:
  const std::vector<MeasuredRequest>& requests_;
  std::size_t at_ = 0;
};

class Filling final : public Observer {
 public:
  explicit Filling(std::vector<MeasuredRequest>& requests) : requests_(requests) {}
  void on_request(const RequestRecord& record) override {
    MeasuredRequest& r = requests_[static_cast<std::size_t>(record.id)];
    r.predicted_ttft_ms = record.ttft.in(kMillisecond);
    r.predicted_e2e_ms = record.e2el.in(kMillisecond);
  }

 private:
  std::vector<MeasuredRequest>& requests_;
};

}  // namespace

RequestRun read_request_run(const std::string& path, const std::string& gpu) {
  if (!path.ends_with(kLines))
    throw ConfigError(
        fmt::format("{}: the name must end in '{}', its settings lie beside it in '...{}'", path, kLines, kSettings));
  RequestRun run;
  std::vector<double> queued, first, last;
  const std::string text = read_file(path, kMostBytes);
  double clock_gap = INFINITY;
  for (std::size_t begin = 0, line_number = 1; begin < text.size(); ++line_number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin), where = fmt::format("{}:{}", path, line_number);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Json json = parsed(line, where);
    MeasuredRequest r{.id = {},
                      .arrival_s = number(json, "arrival_time", where),
                      .prompt_tokens = tokens(json, "input_toks", where),
                      .output_tokens = tokens(json, "output_toks", where)};
    const auto id = json.find("request_id");
    r.id = id != json.end() && id->is_string() ? id->get<std::string>() : std::to_string(run.requests.size());
    const double seen = number(json, "queued_ts", where), out = number(json, "first_token_ts", where),
                 done = number(json, "last_token_ts", where);
    if (out < seen || done < out) throw ConfigError(fmt::format("{}: times must not go back", where));
    clock_gap = std::min(clock_gap, seen - r.arrival_s);
    r.ttft_ms = out, r.e2e_ms = done;  // the engine's clock, made latencies below
    run.requests.push_back(std::move(r));
  }
  if (run.requests.empty()) throw ConfigError(fmt::format("{}: no requests", path));
  std::stable_sort(run.requests.begin(), run.requests.end(),
                   [](const auto& a, const auto& b) { return a.arrival_s < b.arrival_s; });
  const double start = run.requests.front().arrival_s;
  for (MeasuredRequest& r : run.requests) {
    r.ttft_ms = 1e3 * (r.ttft_ms - clock_gap - r.arrival_s);
    r.e2e_ms = 1e3 * (r.e2e_ms - clock_gap - r.arrival_s);
    r.arrival_s -= start;
  }
  const std::string settings = path.substr(0, path.size() - kLines.size()) + std::string(kSettings);
  run.deployment = deployment_of(parsed(read_file(settings, kMostBytes), settings), settings, gpu);
  return run;
}

void predict_requests(RequestRun& run) {
  if (run.deployment->memory.infeasible) throw Unavailable(run.deployment->memory.infeasible->reason);
  Recorded source(run.requests);
  Filling filling(run.requests);
  WorkloadSpec workload;
  workload.arrivals.process = ArrivalSpec::Process::kTrace;
  const ServingMetrics metrics = simulate(run.deployment, source, workload, {}, &filling);
  if (metrics.failed > 0)
    throw ConfigError(fmt::format("{} requests are longer than the engine allows", metrics.failed));
}

std::vector<RequestStatistic> request_statistics(const RequestRun& run) {
  using Value = double (*)(const MeasuredRequest&);
  struct Metric {
    const char* name;
    Value measured, predicted;
  };
  static constexpr Metric kMetrics[] = {{"ttft", [](const MeasuredRequest& r) { return r.ttft_ms; },
                                         [](const MeasuredRequest& r) { return r.predicted_ttft_ms; }},
                                        {"tpot", [](const MeasuredRequest& r) { return r.tpot_ms(); },
                                         [](const MeasuredRequest& r) { return r.predicted_tpot_ms(); }},
                                        {"e2e", [](const MeasuredRequest& r) { return r.e2e_ms; },
                                         [](const MeasuredRequest& r) { return r.predicted_e2e_ms; }}};
  std::vector<RequestStatistic> out;
  for (const Metric& metric : kMetrics) {
    Distribution measured, predicted;
    for (const MeasuredRequest& r : run.requests) {
      measured.add(std::max(0.0, metric.measured(r)));
      predicted.add(std::max(0.0, metric.predicted(r)));
    }
    for (const auto& [name, p] : {std::pair{"p50", 50.0}, {"p90", 90.0}, {"p99", 99.0}})
      out.push_back({metric.name, name, measured.percentile(p), predicted.percentile(p)});
    out.push_back({metric.name, "mean", measured.mean(), predicted.mean()});
  }
  return out;
}

}  // namespace roofcast
