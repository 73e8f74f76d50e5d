// A live server: one or two scrapes of its /metrics page. Format: Prometheus text exposition
// (github.com/prometheus/docs, exposition_formats.md) and OpenMetrics; metric names: vllm/v1/metrics/loggers.py and
// SGLang's metrics collector.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/lines.h"
#include "base/number_text.h"
#include "base/read_file.h"
#include "base/text.h"
#include "sim/plan/measured/bench_reader.h"

namespace roofcast {
namespace {

constexpr std::size_t kFileLimit = std::size_t{1} << 28;
constexpr std::size_t kLongestLine = 100'000, kMostSeries = 100'000;
/// A percentile is only interpolated in a bucket of at most this width, upper / lower bound.
constexpr double kWidestBucket = 1.5;

struct Labels {
  std::map<std::string, std::string> values;
  std::string operator[](const char* name) const {
    const auto found = values.find(name);
    return found == values.end() ? "" : found->second;
  }
};

/// One series: its first and last sample in the file, with times in seconds if present.
struct Series {
  std::string name;  ///< without "vllm:" or "sglang:"
  Labels labels;
  double first = 0, last = 0;
  std::optional<double> first_s, last_s;
  int samples = 0;
};
using Scrape = std::map<std::string, Series>;  ///< by name and labels as written

/// `a="b",c="d"` with escaped quotes and backslashes. `at` moves from after the opening brace to after the closing one.
Labels read_labels(std::string_view line, std::size_t& at, const SourceLocation& location) {
  Labels labels;
  const auto fail = [&] { throw ConfigError(location, "the labels must be {name=\"value\",...}"); };
  while (at < line.size() && line[at] != '}') {
    const std::size_t equal = line.find('=', at);
    if (equal == std::string_view::npos || equal + 1 >= line.size() || line[equal + 1] != '"') fail();
    const std::string name(trim(line.substr(at, equal - at)));
    std::string value;
    for (at = equal + 2; at < line.size() && line[at] != '"'; ++at) {
      if (line[at] == '\\' && at + 1 < line.size()) ++at;
      value += line[at];
    }
    if (at >= line.size()) fail();
    labels.values[name] = value;
    ++at;
    while (at < line.size() && (line[at] == ',' || line[at] == ' ')) ++at;
  }
  if (at >= line.size()) fail();
  ++at;
  return labels;
}

std::optional<double> number_of(const std::string& text) {
  if (text == "NaN") return std::nullopt;
  if (text == "+Inf" || text == "Inf") return INFINITY;
  double value = 0;
  return parse_number(text, value) == NumberFault::kNone ? std::optional(value) : std::nullopt;
}

std::string_view server_of(std::string_view name) {
  return name.starts_with("vllm:") ? "vLLM" : name.starts_with("sglang:") ? "SGLang" : "";
}

struct File {
  Scrape scrape;
  std::string server, model;
};

void read_line(const std::string& line, const SourceLocation& location, double stamp_unit, File& file) {
  std::size_t at = line.find_first_of("{ \t");
  const std::string name = line.substr(0, at);
  const std::string_view server = server_of(name);
  if (server.empty()) return;  // python_gc_objects_collected_total and similar
  if (at == std::string::npos) throw ConfigError(location, fmt::format("'{}' has no value", name));
  Labels labels;
  if (line[at] == '{') labels = read_labels(line, ++at, location);
  std::vector<std::string> words;
  for (const std::string& word : split(line.substr(at, line.find(" # ", at) - at), ' ')) {
    if (!trim(word).empty()) words.emplace_back(trim(word));
  }
  if (words.empty())
    throw ConfigError(location, fmt::format("'{}' has no value: was the file written to its end?", name));
  const auto value = number_of(words[0]);
  if (!value && words[0] != "NaN")
    throw ConfigError(location, fmt::format("the value of '{}' is not a number: '{}'", name, words[0]));
  if (!value) return;
  if (const std::string model = labels["model_name"]; !model.empty()) {
    if (!file.model.empty() && file.model != model)
      throw ConfigError(location,
                        fmt::format("the server has two models, {} and {}; keep the lines of one", file.model, model));
    file.model = model;
  }
  file.server = server;
  Series& series = file.scrape[line.substr(0, at)];
  series.name = name.substr(name.find(':') + 1);
  series.labels = std::move(labels);
  const auto time = words.size() > 1 ? number_of(words[1]) : std::nullopt;
  const auto seconds = time ? std::optional(*time * stamp_unit) : std::nullopt;
  if (series.samples++ == 0) series.first = *value, series.first_s = seconds;
  series.last = *value, series.last_s = seconds;
}

File read_scrape(const std::string& path) {
  const std::string text = read_file(path, kFileLimit);
  File file;
  // Seconds in OpenMetrics, which ends with "# EOF"; milliseconds in the older format.
  const double stamp_unit = text.find("\n# EOF") != std::string::npos ? 1 : 1e-3;
  each_line(text, [&](std::string_view line, int number) {
    const std::string_view trimmed = trim(line);
    if (trimmed.empty() || trimmed[0] == '#') return;
    const SourceLocation location{path, number, 1};
    if (trimmed.size() > kLongestLine) throw ConfigError(location, "the line is too long for a metric");
    read_line(std::string(trimmed), location, stamp_unit, file);
    if (file.scrape.size() > kMostSeries)
      throw ConfigError(location, fmt::format("more than {} series of metrics", kMostSeries));
  });
  if (file.scrape.empty())
    throw ConfigError(SourceLocation{path, 0, 0},
                      "no metric of vLLM or SGLang ('vllm:...', 'sglang:...'); expected what the "
                      "server's /metrics page says");
  return file;
}

/// Counter increases between two scrapes, up to one scrape, or between the first and last sample of one.
class Counted {
 public:
  Counted(const File& file, const File* before, const std::string& path) : path_(path) {
    for (const auto& [key, series] : file.scrape) {
      Series change = series;
      if (before != nullptr) {
        const auto found = before->scrape.find(key);
        change.first = found == before->scrape.end() ? 0 : found->second.last;
        change.first_s = found == before->scrape.end() ? std::nullopt : found->second.last_s;
      } else if (series.samples == 1) {
        change.first = 0, change.first_s.reset();
      }
      changes_.push_back(std::move(change));
    }
  }
  bool has(const std::string& name) const {
    return std::any_of(changes_.begin(), changes_.end(), [&](const Series& s) { return s.name == name; });
  }
  /// Increase of a counter, or of a histogram's sum or count, over all engines of the server; 0 if absent.
  double total(const std::string& name, const char* label = "", std::string_view value = "") const {
    double sum = 0;
    for (const Series& s : changes_) {
      if (s.name == name && (*label == '\0' || s.labels[label] == value)) sum += change_of(s);
    }
    return sum;
  }
  /// Cumulative counts by upper bound, ascending.
  std::map<double, double> buckets(const std::string& name) const {
    std::map<double, double> out;
    for (const Series& s : changes_) {
      if (s.name != name + "_bucket") continue;
      if (const auto bound = number_of(s.labels["le"])) out[*bound] += change_of(s);
    }
    return out;
  }
  /// Time between the samples, if they have times.
  double seconds() const {
    double longest = 0;
    for (const Series& s : changes_) {
      if (s.first_s && s.last_s) longest = std::max(longest, *s.last_s - *s.first_s);
    }
    return longest;
  }

 private:
  double change_of(const Series& s) const {
    if (s.last < s.first)
      throw ConfigError(SourceLocation{path_, 0, 0},
                        fmt::format("'{}' fell from {} to {}: the server started anew between the scrapes, or they "
                                    "stand in the wrong order",
                                    s.name, s.first, s.last));
    return s.last - s.first;
  }
  std::string path_;
  std::vector<Series> changes_;
};

/// Linear interpolation within the bucket, as in Prometheus' histogram_quantile; empty if the bucket is too wide.
std::optional<double> quantile(const std::map<double, double>& buckets, double share) {
  if (buckets.empty()) return std::nullopt;
  const double rank = share * buckets.rbegin()->second;
  double lower = 0, below = 0;
  for (const auto& [upper, count] : buckets) {
    if (count >= rank && count > below) {
      if (lower <= 0 || !std::isfinite(upper) || upper / lower > kWidestBucket * (1 + 1e-9)) return std::nullopt;
      return lower + (upper - lower) * (rank - below) / (count - below);
    }
    lower = upper, below = count;
  }
  return std::nullopt;
}

void add_latency(const Counted& counted, std::initializer_list<const char*> names, const char* latency, BenchRun& run) {
  for (const std::string name : names) {
    const double count = counted.total(name + "_count");
    if (count <= 0) continue;
    run.values.emplace_back(fmt::format("mean_{}_ms", latency), 1e3 * counted.total(name + "_sum") / count);
    const auto buckets = counted.buckets(name);
    for (const auto& [statistic, share] : {std::pair{"median", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}}) {
      if (const auto seconds = quantile(buckets, share))
        run.values.emplace_back(fmt::format("{}_{}_ms", statistic, latency), 1e3 * *seconds);
    }
    return;
  }
}

/// Mean tokens per request: of finished requests, else all tokens over all requests.
double tokens(const Counted& counted, const std::string& histogram, const std::string& counter, double completed) {
  const double ended = counted.total(histogram + "_count");
  return ended > 0 ? counted.total(histogram + "_sum") / ended * completed : counted.total(counter);
}

}  // namespace

bool is_scrape(std::string_view text) {
  const std::string_view start = text.substr(0, std::size_t{1} << 16);
  return start.starts_with("# HELP ") || start.starts_with("# TYPE ") || server_of(start) != "";
}

BenchRun read_scrapes(const std::vector<std::string>& paths, std::optional<Seconds> window) {
  if (paths.empty() || paths.size() > 2)
    throw ConfigError("--prometheus: takes one scrape, or two: before the load and after it");
  const File last = read_scrape(paths.back());
  const std::optional<File> before = paths.size() == 2 ? std::optional(read_scrape(paths.front())) : std::nullopt;
  const Counted counted(last, before ? &*before : nullptr, paths.back());
  BenchRun run;
  run.path = paths.back();
  run.tool = last.server + " /metrics";
  run.model = last.model;
  run.window = true;
  run.failed = counted.total("request_success_total", "finished_reason", "abort") +
               counted.total("request_success_total", "finished_reason", "error");
  const double ended = counted.has("request_success_total") ? counted.total("request_success_total")
                       : counted.has("num_requests_total")  ? counted.total("num_requests_total")
                                                            : counted.total("e2e_request_latency_seconds_count");
  run.completed = ended - run.failed;
  if (run.completed <= 0)
    throw ConfigError(SourceLocation{run.path, 0, 0},
                      before ? "no request ended between the scrapes: there is nothing to compare"
                             : "no request has ended yet: there is nothing to compare");
  run.duration_s = window ? window->base() : counted.seconds();
  run.input_tokens = tokens(counted, "request_prompt_tokens", "prompt_tokens_total", run.completed);
  run.output_tokens = tokens(counted, "request_generation_tokens", "generation_tokens_total", run.completed);
  if (run.duration_s > 0) {
    run.observed_rate = run.completed / run.duration_s;
    run.values.emplace_back("request_throughput", *run.observed_rate);
    run.values.emplace_back("output_throughput", run.output_tokens / run.duration_s);
  }
  add_latency(counted, {"time_to_first_token_seconds"}, "ttft", run);
  add_latency(counted, {"request_time_per_output_token_seconds"}, "tpot", run);
  add_latency(counted, {"inter_token_latency_seconds", "time_per_output_token_seconds"}, "itl", run);
  add_latency(counted, {"e2e_request_latency_seconds"}, "e2el", run);
  if (const double queries = counted.total("prefix_cache_queries_total"); queries > 0)
    run.values.emplace_back("cached_prompt_share", counted.total("prefix_cache_hits_total") / queries);
  if (counted.has("num_preemptions_total"))
    run.values.emplace_back("preemptions", counted.total("num_preemptions_total"));
  check_run(run);
  return run;
}

}  // namespace roofcast
