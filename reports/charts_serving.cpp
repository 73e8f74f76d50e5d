// Charts of one simulation: latency percentiles, queue and cache over time; of its requests: latency over time,
// distribution.

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/number_text.h"
#include "reports/charts.h"
#include "reports/table.h"

namespace roofcast::reports {
namespace {

constexpr std::array<const char*, 4> kLatencies{"TTFT", "TPOT", "ITL", "E2E latency"};
struct Statistic {
  const char* name;
  std::array<ResultKey, 4> keys;  ///< of kLatencies
};
constexpr std::array<Statistic, 4> kStatistics{
    {{"99th percentile", {"p99_ttft_ms", "p99_tpot_ms", "p99_itl_ms", "p99_e2el_ms"}},
     {"90th percentile", {"p90_ttft_ms", "p90_tpot_ms", "p90_itl_ms", "p90_e2el_ms"}},
     {"median", {"median_ttft_ms", "median_tpot_ms", "median_itl_ms", "median_e2el_ms"}},
     {"mean", {"mean_ttft_ms", "mean_tpot_ms", "mean_itl_ms", "mean_e2el_ms"}}}};

void add_percentiles(const Json& j, std::vector<Chart>& out) {
  Chart c{.id = "latency", .title = "Latency under load", .horizontal = true};
  c.x = {.title = "milliseconds (log scale)", .log = true};
  c.y.categories.assign(kLatencies.rbegin(), kLatencies.rend());
  for (const auto& [name, keys] : kStatistics) {
    Series s{.name = name, .shape = Shape::kBars, .write_labels = true};
    for (std::size_t i = 0; i < kLatencies.size(); ++i) {
      const auto v = number_at(j, keys[i]);
      if (!v) continue;
      s.x.push_back(static_cast<double>(kLatencies.size() - 1 - i)), s.y.push_back(*v);
      s.labels.push_back(fmt::format("{} {}: {} ms", kLatencies[i], name, significant(*v, 4)));
    }
    c.series.push_back(std::move(s));
  }
  if (j.contains("objectives") && j["objectives"].is_array()) {
    for (const Json& o : j["objectives"]) {
      if (const auto limit = number_at(o, "limit_ms"))
        c.lines.push_back({true, *limit, text_at(o, "objective") + " limit"});
    }
  }
  c.caption =
      "Definitions of vLLM's serving benchmark: TPOT is a request's mean gap after its first token, ITL every single "
      "gap.";
  out.push_back(std::move(c));
}

/// Adds the 90 % intervals of `--intervals` around the predictions.
void add_ranges(const Json& j, std::vector<Chart>& out) {
  Chart c{.id = "ranges", .title = "How sure: 90 % of deployments like it", .horizontal = true};
  c.x = {.title = "milliseconds (log scale)", .log = true};
  Series range{.name = "90 % of deployments like it", .shape = Shape::kBars, .color = 4};
  for (const char* metric : {"p99_tpot_ms", "mean_tpot_ms", "p99_ttft_ms", "mean_ttft_ms"}) {
    const auto number = [&](const std::string& key) -> std::optional<double> {
      const auto found = j.find(key);
      return found != j.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
    };
    const auto low = number(std::string(metric) + "_low"), high = number(std::string(metric) + "_high"),
               here = number(metric);
    if (!low || !high || !here) continue;
    const std::string name = std::string(metric).starts_with("p99") ? "p99" : "mean";
    range.x.push_back(static_cast<double>(c.y.categories.size()));
    range.base.push_back(*low), range.y.push_back(*high);
    c.y.categories.push_back((std::string(metric).find("ttft") != std::string::npos ? "TTFT " : "TPOT ") + name +
                             fmt::format(": {} ms", significant(*here, 3)));
    range.labels.push_back(
        fmt::format("{}, 90 %: {} to {}", c.y.categories.back(), significant(*low, 3), significant(*high, 3)));
  }
  if (c.y.categories.empty()) return;
  c.series = {std::move(range)};
  out.push_back(std::move(c));
}

struct Trace {
  const char* name;
  ResultKey key;
  double scale = 1;
};

/// Seconds per unit of time: seconds, or hours for long runs.
double seconds_of_unit(const Json& intervals) {
  constexpr double kLong = 7200;
  const auto end = intervals.empty() ? std::nullopt : number_at(intervals.back(), "start_s");
  return end && *end > kLong ? 3600 : 1;
}

Series over_time(const Json& intervals, const Trace& trace) {
  const double unit = seconds_of_unit(intervals);
  Series s{.name = trace.name};
  for (const Json& interval : intervals) {
    const auto at = number_at(interval, "start_s"), v = number_at(interval, trace.key);
    if (at && v) s.x.push_back(*at / unit), s.y.push_back(*v * trace.scale);
  }
  return s;
}

void add_over_time(const Json& intervals, Chart c, const std::vector<Trace>& traces, std::vector<Chart>& out) {
  c.x.title = seconds_of_unit(intervals) > 1 ? "time since the start, h" : "time since the start, s";
  for (const Trace& trace : traces) c.series.push_back(over_time(intervals, trace));
  if (std::any_of(c.series.begin(), c.series.end(), [](const Series& s) { return s.x.size() > 1; }))
    out.push_back(std::move(c));
}

/// Moves a reference line far above the data to the caption.
void keep_in_scale(Chart& c) {
  double most = 0;
  for (const Series& s : c.series)
    for (const double y : s.y) most = std::max(most, y);
  if (c.lines.empty() || most > 0.3 * c.lines.front().at) return;
  c.caption =
      fmt::format("At most {} % averaged over an interval: the pool, 100 %, is far above.", significant(most, 2));
  c.lines.clear();
}

bool varies(const Series& s) {
  return std::adjacent_find(s.y.begin(), s.y.end(), [](double a, double b) { return a != b; }) != s.y.end();
}

void add_intervals(const Json& j, std::vector<Chart>& out) {
  if (!j.contains("intervals") || !j["intervals"].is_array()) return;
  const Json& intervals = j["intervals"];
  add_over_time(intervals, {.id = "queue", .title = "Queue and batch over time", .y = {.title = "requests"}},
                {{"waiting", "waiting"}, {"running", "running"}}, out);
  add_over_time(intervals,
                {.id = "kv-usage",
                 .title = "KV cache over time",
                 .y = {.title = "share of the pool, %"},
                 .lines = {{false, 100, "pool"}}},
                {{"KV cache usage", "kv_cache_usage", 100}}, out);
  if (!out.empty() && out.back().id == "kv-usage") keep_in_scale(out.back());
  add_over_time(intervals, {.id = "throughput-time", .title = "Tokens over time", .y = {.title = "tokens/s"}},
                {{"output tokens/s", "output_tokens_per_s"}, {"prompt tokens/s", "prompt_tokens_per_s"}}, out);
  const Trace serving{"serving", "replicas"};
  if (varies(over_time(intervals, serving))) {
    std::vector<Trace> fleet{serving};
    for (const Trace& trace : {Trace{"starting", "replicas_starting"}, Trace{"down", "replicas_down"}}) {
      if (varies(over_time(intervals, trace))) fleet.push_back(trace);
    }
    add_over_time(intervals, {.id = "replicas", .title = "Replicas over time", .y = {.title = "replicas"}}, fleet, out);
  }
}

std::vector<double> column_of(const CsvTable& t, std::string_view name) {
  std::vector<double> values;
  const std::size_t column = t.column(name);
  values.reserve(t.rows());
  for (std::size_t r = 0; r < t.rows(); ++r) {
    double v = std::nan("");
    (void)parse_number(t.at(r, column), v);
    values.push_back(v);
  }
  return values;
}

/// Cumulative fraction of requests by latency.
Series distribution_of(std::string name, std::vector<double> values) {
  std::erase_if(values, [](double v) { return !std::isfinite(v) || v <= 0; });
  std::sort(values.begin(), values.end());
  Series s{.name = std::move(name)};
  const std::size_t n = values.size(), steps = std::min<std::size_t>(n, 500);
  for (std::size_t k = 1; k <= steps; ++k) {
    const std::size_t i = k * n / steps - 1;
    s.x.push_back(values[i]), s.y.push_back(100.0 * static_cast<double>(i + 1) / static_cast<double>(n));
  }
  return s;
}

}  // namespace

void add_simulation_charts(const Result& result, std::vector<Chart>& out) {
  add_percentiles(result.json, out);
  add_ranges(result.json, out);
  add_intervals(result.json, out);
}

void add_request_charts(const Result& result, std::vector<Chart>& out) {
  const CsvTable& t = *result.table;
  const std::vector<double> arrival = column_of(t, "arrival_s"), ttft = column_of(t, "ttft_ms");
  Chart spread{.id = "distribution", .title = "How latencies spread over requests"};
  spread.x = {.title = "milliseconds (log scale)", .log = true};
  spread.y = {.title = "share of requests at or below, %", .low = 0.0, .high = 100.0};
  for (const auto& [column, name] :
       {std::pair{"ttft_ms", "TTFT"}, {"tpot_ms", "TPOT"}, {"e2el_ms", "E2E latency"}, {"queue_ms", "queue"}}) {
    spread.series.push_back(distribution_of(name, column_of(t, column)));
  }
  spread.caption = fmt::format("{} requests; values of 0 are left out.", t.rows());
  out.push_back(std::move(spread));
  Chart times{.id = "requests", .title = "Time to first token by arrival"};
  times.x.title = "arrival, s";
  times.y = {.title = "TTFT, ms (log scale)", .log = true};
  times.series.push_back({.name = "requests", .shape = Shape::kPoints, .x = arrival, .y = ttft});
  out.push_back(std::move(times));
}

}  // namespace roofcast::reports
