#include "sim/plan/measured/bench_run.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_file.h"
#include "base/lines.h"
#include "base/number_text.h"
#include "base/read_file.h"
#include "base/text.h"
#include "sim/plan/measured/bench_reader.h"

namespace roofcast {
namespace {

using Json = nlohmann::ordered_json;

/// Load generators send thousands of requests; comparing a million takes most of a minute.
constexpr double kMostRequests = 1e6;

constexpr std::array<std::pair<std::string_view, LatencyKey::Latency>, 4> kLatencies{
    {{"ttft", LatencyKey::Latency::kTtft},
     {"tpot", LatencyKey::Latency::kTpot},
     {"itl", LatencyKey::Latency::kItl},
     {"e2el", LatencyKey::Latency::kE2el}}};

constexpr std::string_view kTools =
    "vllm bench serve --save-result, SGLang bench_serving --output-file, AIPerf (profile_export_aiperf.json), "
    "GenAI-Perf (profile_export_genai_perf.json), GuideLLM (benchmarks.json), MLPerf LoadGen (mlperf_log_detail.txt), "
    "llama-bench -o json";

constexpr std::size_t kFileLimit = std::size_t{1} << 30;

/// Python writes Infinity and NaN, which are not valid JSON. Quotes them, so that the readers accept or report them.
std::string quote_python_numbers(std::string text) {
  if (text.find("Infinity") == std::string::npos && text.find("NaN") == std::string::npos) return text;
  std::string out;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = std::string_view(text).substr(at);
    std::string_view word;
    for (const std::string_view number : {"-Infinity", "Infinity", "NaN"}) {
      if (!quoted && word.empty() && rest.starts_with(number)) word = number;
    }
    if (!word.empty()) {
      out.append("\"").append(word).append("\"");
      at += word.size() - 1;
      continue;
    }
    out += text[at];
    if (quoted && text[at] == '\\' && at + 1 < text.size()) {
      out += text[++at];
    } else if (text[at] == '"') {
      quoted = !quoted;
    }
  }
  return out;
}

struct Document {
  Json json;
  SourceLocation location;
};

/// One document per file, or one per line.
std::vector<Document> documents_of(const std::string& path, const std::string& text) {
  const std::size_t end = text.find('\n');
  const bool lines = end != std::string::npos && text.find_first_not_of(" \t\r\n", end) != std::string::npos &&
                     Json::accept(text.substr(0, end));
  std::vector<Document> out;
  if (!lines) {
    out.push_back({parse_json(path, text, "the result of a load generator"), SourceLocation{path, 0, 0}});
    return out;
  }
  check_json_size(path, text);  // of all lines together
  each_line(text, [&](std::string_view line, int number) {
    if (trim(line).empty()) return;
    try {
      out.push_back({parse_json(path, std::string(line), "the result of a load generator, one a line"),
                     SourceLocation{path, number, 0}});
    } catch (const ConfigError& e) {
      throw ConfigError(SourceLocation{path, number, e.location().column}, e.message());
    }
  });
  return out;
}

bool is_metric_block(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_object() && !found->contains("successful");
}

/// Reads the runs of a document; its keys identify the tool.
void read_document(const Document& document, std::vector<BenchRun>& out) {
  const Json& json = document.json;
  if (!json.is_object())
    throw ConfigError(document.location, fmt::format("not the result of a known tool: {}", kTools));
  if (json.contains("benchmarks") && json["benchmarks"].is_array()) {
    const BenchReader report(json, document.location, "GuideLLM");
    for (const Json& benchmark : json["benchmarks"]) {
      if (!benchmark.is_object() || !benchmark.contains("metrics"))
        throw ConfigError(document.location,
                          "'benchmarks' must be a list of maps with 'metrics', as GuideLLM writes it");
      out.push_back(read_guidellm_run(BenchReader(benchmark, document.location, "GuideLLM"), report));
    }
    if (json["benchmarks"].empty())
      throw ConfigError(document.location, "the GuideLLM report holds no benchmark: did the run finish?");
    return;
  }
  if (json.contains("aiperf_version") || is_metric_block(json, "request_latency") ||
      is_metric_block(json, "time_to_first_token")) {
    const char* tool = json.contains("aiperf_version") || json.contains("schema_version") ? "AIPerf" : "GenAI-Perf";
    out.push_back(read_aiperf_run(BenchReader(json, document.location, tool), tool));
    return;
  }
  if (!json.contains("completed") && !json.contains("total_output_tokens"))
    throw ConfigError(document.location, fmt::format("not the result of a known tool: {}", kTools));
  const bool sglang = json.contains("total_throughput") || json.contains("mean_e2e_latency_ms");
  const char* tool = json.contains("kind") ? "roofcast simulate" : sglang ? "SGLang bench_serving" : "vllm bench serve";
  out.push_back(read_flat_run(BenchReader(json, document.location, tool), tool));
}

std::vector<BenchRun> runs_of(const std::string& path) {
  const std::string text = read_file(path, kFileLimit);
  if (text.find_first_not_of(" \t\r\n\xEF\xBB\xBF") == std::string::npos)
    throw ConfigError(SourceLocation{path, 0, 0}, "the file is empty");
  if (is_scrape(text))
    throw ConfigError(SourceLocation{path, 0, 0}, "metrics of a live server: --prometheus FILE reads them");
  if (text.substr(0, 4096).find("MLPerf Results Summary") != std::string::npos)
    throw ConfigError(SourceLocation{path, 0, 0},
                      "LoadGen's summary does not say how many requests ran; give mlperf_log_detail.txt beside it");
  if (text.substr(0, 4096).find(":::MLLOG") != std::string::npos) return {read_loadgen_run(path, text)};
  std::vector<BenchRun> runs;
  for (const Document& document : documents_of(path, quote_python_numbers(text))) read_document(document, runs);
  return runs;
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
  if (duration_s <= 0) return std::nullopt;
  const auto latency = value("mean_e2el_ms");
  if (latency) return completed * *latency / 1e3 / duration_s;
  const auto ttft = value("mean_ttft_ms"), tpot = value("mean_tpot_ms");
  if (!ttft || !tpot) return std::nullopt;
  return completed / duration_s * (*ttft + *tpot * std::max(0.0, mean_output() - 1)) / 1e3;
}

std::string BenchRun::load() const {
  if (request_rate) return fmt::format("{} {:.4g}/s", constant_rate ? "constant" : "poisson", *request_rate);
  if (max_concurrency) return fmt::format("concurrency {:.0f}", *max_concurrency);
  return unlimited_rate ? "all at once" : "load not said";
}

namespace {

/// A percentile of one latency that is below a lower one: "p99_ttft_ms (10) is below median_ttft_ms (50)".
std::optional<std::string> percentiles_out_of_order(const BenchRun& run) {
  constexpr double kRounding = 1e-3;  // tools print hundredths of a millisecond
  for (const auto& [high_name, high] : run.values) {
    const auto upper = parse_latency_key(high_name);
    if (!upper || upper->statistic != LatencyKey::Statistic::kPercentile) continue;
    for (const auto& [low_name, low] : run.values) {
      const auto lower = parse_latency_key(low_name);
      if (!lower || lower->statistic != upper->statistic || lower->latency != upper->latency) continue;
      if (lower->percentile < upper->percentile && high < low * (1.0 - kRounding))
        return fmt::format("{} ({:.4g}) is below {} ({:.4g})", high_name, high, low_name, low);
    }
  }
  return std::nullopt;
}

}  // namespace

void check_run(const BenchRun& run) {
  const auto fail = [&](const std::string& message) { throw ConfigError(SourceLocation{run.path, 0, 0}, message); };
  if (!run.window && !(std::max(run.requests(), run.completed) <= kMostRequests))
    fail(fmt::format("a run of {:.4g} requests; it is simulated many times over, so at most {:.0f} are read",
                     std::max(run.requests(), run.completed), kMostRequests));
  if (run.completed == 0) fail("the run completed no request: there is nothing to compare");
  const bool figure = std::any_of(run.values.begin(), run.values.end(), [](const auto& value) {
    const auto key = parse_latency_key(value.first);
    return key && (key->statistic == LatencyKey::Statistic::kMean ||
                   (key->statistic == LatencyKey::Statistic::kPercentile && key->percentile == 50));
  });
  if (!figure && !(run.duration_s > 0 && run.output_tokens > 0))
    fail("it has neither a mean or median of TTFT, TPOT, ITL or E2E latency nor output tokens and a duration");
  if (const auto contradiction = percentiles_out_of_order(run))
    fail(fmt::format("{}: these are not percentiles of one run", *contradiction));
}

std::vector<BenchRun> read_bench_runs(const std::string& path) {
  std::vector<BenchRun> runs = runs_of(path);
  for (BenchRun& run : runs) run.path = path;
  return runs;
}

BenchRun read_bench_run(const std::string& path, std::optional<std::int64_t> which) {
  std::vector<BenchRun> runs = read_bench_runs(path);
  const auto count = static_cast<std::int64_t>(runs.size());
  if (which ? *which < 1 || *which > count : count != 1) {
    constexpr std::int64_t kListed = 12;
    std::vector<std::string> words;
    for (std::int64_t i = 0; i < std::min(count, kListed); ++i)
      words.push_back(fmt::format("{} {}", i + 1, runs[static_cast<std::size_t>(i)].load()));
    throw ConfigError(SourceLocation{path, 0, 0},
                      fmt::format("holds {} run{}, --run N takes one: {}{}", count, count == 1 ? "" : "s",
                                  join(words, "; "), count > kListed ? "; ..." : ""));
  }
  BenchRun run = std::move(runs[static_cast<std::size_t>(which.value_or(1) - 1)]);
  check_run(run);
  return run;
}

std::optional<double> predicted_value(const ServingMetrics& m, std::string_view key) {
  const double seconds = m.duration.base();
  if (key == "cached_prompt_share") return m.input_tokens > 0 ? m.cached_tokens / m.input_tokens : 0;
  if (key == "preemptions") return static_cast<double>(m.preemptions);
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
