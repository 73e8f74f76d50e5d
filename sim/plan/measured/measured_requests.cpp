#include "sim/plan/measured/measured_requests.h"

#include <cmath>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_file.h"
#include "base/read_file.h"
#include "sim/plan/measured/request_settings.h"
#include "sim/serve/simulation.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

using Json = nlohmann::json;
constexpr std::size_t kMostBytes = std::size_t{1} << 30, kMostRequests = 4'000'000;
constexpr std::string_view kLines = "requests.jsonl", kSettings = "meta.json";

Json parsed(const std::string& text, const std::string& where) {
  check_json_size(where, text);
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

struct Line {
  MeasuredRequest request;  ///< latencies are still engine clock times
  double queued = 0;
};

bool blank(const Json& line, const char* key) {
  const auto at = line.find(key);
  return at == line.end() || at->is_null();
}

/// Empty for a request without engine times: it failed, or was cut off.
std::optional<Line> read_line(const Json& json, const std::string& where) {
  Line line;
  MeasuredRequest& r = line.request;
  r.prompt_tokens = tokens(json, "input_toks", where);
  if (blank(json, "first_token_ts") && blank(json, "last_token_ts")) return std::nullopt;
  r.output_tokens = tokens(json, "output_toks", where);
  r.arrival_s = number(json, "arrival_time", where);
  const auto id = json.find("request_id");
  if (id != json.end() && id->is_string()) r.id = id->get<std::string>();
  line.queued = number(json, blank(json, "queued_ts") ? "scheduled_ts" : "queued_ts", where);
  const double out = number(json, "first_token_ts", where), done = number(json, "last_token_ts", where);
  if (out < line.queued || done < out) throw ConfigError(fmt::format("{}: times must not go back", where));
  r.ttft_ms = out, r.e2e_ms = done;
  return line;
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

/// "A_requests.jsonl" has its settings in "A_meta.json"; a file of another name in the one "...meta.json" beside it.
std::string settings_beside(const std::string& path) {
  if (path.ends_with(kLines)) return path.substr(0, path.size() - kLines.size()) + std::string(kSettings);
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::vector<std::string> found;
  std::error_code unreadable;
  for (const auto& file : std::filesystem::directory_iterator(folder.empty() ? "." : folder, unreadable)) {
    if (file.path().filename().string().ends_with(kSettings)) found.push_back(file.path().string());
  }
  if (found.size() == 1) return found.front();
  throw ConfigError(
      fmt::format("{}: its settings must lie beside it, in the only file '...{}' there or in 'NAME{}' of "
                  "'NAME{}', but there are {}",
                  path, kSettings, kSettings, kLines, found.size()));
}

}  // namespace

RequestRun read_request_run(const std::string& path, const std::string& gpu, const std::string& model) {
  const std::string settings = settings_beside(path);
  RequestRun run;
  const std::string text = read_file(path, kMostBytes);
  double clock_gap = INFINITY;
  for (std::size_t begin = 0, line_number = 1; begin < text.size(); ++line_number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin), where = fmt::format("{}:{}", path, line_number);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    std::optional<Line> read = read_line(parsed(line, where), where);
    if (!read) {
      ++run.left_out;
      continue;
    }
    if (read->request.id.empty()) read->request.id = std::to_string(run.requests.size());
    clock_gap = std::min(clock_gap, read->queued - read->request.arrival_s);
    run.requests.push_back(std::move(read->request));
    if (run.requests.size() > kMostRequests)
      throw ConfigError(fmt::format("{}: more than {} requests", where, kMostRequests));
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
  RequestSettings described = read_request_settings(settings, gpu, model);
  run.deployment = std::move(described.deployment);
  run.replicas = described.replicas;
  return run;
}

void predict_requests(RequestRun& run) {
  if (run.deployment->memory.infeasible) throw Unavailable(run.deployment->memory.infeasible->reason);
  Recorded source(run.requests);
  Filling filling(run.requests);
  WorkloadSpec workload;
  workload.arrivals.process = ArrivalSpec::Process::kTrace;
  ServingOptions options;
  options.replicas = run.replicas;
  options.router = "least_loaded";
  const ServingMetrics metrics = simulate(run.deployment, source, workload, options, &filling);
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
