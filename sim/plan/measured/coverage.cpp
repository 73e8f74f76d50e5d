#include "sim/plan/measured/coverage.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/error_summary.h"
#include "sim/plan/parallel.h"
#include "sim/plan/steady_rate.h"
#include "sim/plan/truth.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

using Range = RunIntervals::Range;

Range times(const Range& range, double factor) { return {range.low * factor, range.high * factor}; }

/// The range of one metric of a static, offline or online run. The duration of a run scales as 1 / throughput.
std::optional<Range> range_of_value(const MeasuredRun& run, const RunIntervals& intervals) {
  if (run.metric == "ttft_ms" || run.metric == "tpot_ms" || run.metric == "itl_ms")
    return intervals.of("mean_" + run.metric);
  const auto tokens = intervals.of("output_throughput");
  if (!tokens) return std::nullopt;
  if (run.metric == "e2e_ms") {
    const double ms = run.workload.output_tokens.mean() * static_cast<double>(run.workload.requests) * 1e3;
    return Range{ms / tokens->high, ms / tokens->low};
  }
  if (run.metric == "tokens_per_s_per_gpu") return times(*tokens, 1.0 / run.deployment->sharding.gpus());
  if (run.metric == "total_tokens_per_s") return intervals.of("total_token_throughput");
  return tokens;
}

}  // namespace

std::optional<RunIntervals::Range> RunIntervals::of(std::string_view metric) const {
  for (const MetricInterval& i : metrics) {
    if (i.metric == metric) return Range{i.low, i.high};
  }
  return std::nullopt;
}

RunIntervals intervals_of(const Scenario& scenario) {
  const ServingMetrics m = simulate(scenario.deployment, *scenario.workload, scenario.serving);
  RunIntervals out{.metrics = serving_intervals(scenario, m)};
  if (m.completed > 0) out.regime = regime_of(scenario, m);
  const double steady = steady_output_rate(*scenario.workload, m);
  if (steady > 0) out.steady_over_mean = steady / (m.output_tokens / m.duration.base());
  return out;
}

std::vector<ColumnRange> ranges_of(const MeasuredRun& run, RunKind kind, const RunIntervals& intervals) {
  if (intervals.metrics.empty()) return {};
  const auto throughput = intervals.of("output_throughput");
  switch (kind) {
    case RunKind::kAggregated:
    case RunKind::kDisaggregated:
      return {{"ttft_ms", "ttft_ms", intervals.of("mean_ttft_ms")},
              {"tpot_ms", "tpot_ms", intervals.of("mean_tpot_ms")}};
    case RunKind::kSteady:
      return {{"median_itl_ms", "median_itl_ms", intervals.of("median_itl_ms")},
              {"output_tokens_per_s", "output_tokens_per_s",
               throughput ? std::optional(times(*throughput, intervals.steady_over_mean)) : std::nullopt}};
    case RunKind::kSubmission:
      if (!run.workload.objectives) return {{run.metric, run.metric, throughput}};
      return {{"mean_ttft_ms", "mean_ttft_ms", intervals.of("mean_ttft_ms")},
              {"p99_ttft_ms", "p99_ttft_ms", intervals.of("p99_ttft_ms")},
              {"p99_tpot_ms", "p99_tpot_ms", intervals.of("p99_tpot_ms")}};
    case RunKind::kStatic:
    case RunKind::kOffline:
    case RunKind::kOnline:
      return {{"value", run.metric, range_of_value(run, intervals)}};
  }
  fail_check("kind", __FILE__, __LINE__, "no such kind of table");
}

std::vector<RunIntervals> run_intervals(const MeasuredRuns& runs) {
  std::vector<RunIntervals> out(runs.runs.size());
  parallel_for_each_index(out.size(), [&](std::size_t i) {
    if (runs.runs[i].note.empty() && runs.runs[i].scored) out[i] = intervals_of(scenario_of(runs.runs[i]));
  });
  return out;
}

std::vector<CoverageLine> coverage(const std::vector<Covered>& values) {
  std::map<std::pair<std::string, std::string>, std::pair<std::vector<double>, std::size_t>> lines;
  for (const Covered& v : values) {
    for (const std::string& name : v.classes) {
      auto& [widths, inside] = lines[{name, v.metric}];
      widths.push_back(v.range.high / v.range.low);
      inside += v.measured >= v.range.low && v.measured <= v.range.high ? 1 : 0;
    }
  }
  std::vector<CoverageLine> out;
  for (auto& [key, line] : lines) {
    const double rows = static_cast<double>(line.first.size());
    out.push_back(
        {key.first, key.second, line.first.size(), static_cast<double>(line.second) / rows, quantile(line.first, 0.5)});
  }
  return out;
}

std::vector<Covered> covered_runs(const MeasuredRuns& runs, const CsvTable& table,
                                  const std::vector<RunIntervals>& intervals) {
  std::vector<Covered> values;
  for (std::size_t i = 0; i < runs.runs.size(); ++i) {
    const MeasuredRun& run = runs.runs[i];
    if (!run.scored || !run.note.empty()) continue;
    std::vector<std::string> classes{"all", run.deployment->engine.name, run.classes.gpu};
    if (closed_loop(runs.kind)) classes.emplace_back(name_of(intervals[i].regime));
    if (runs.kind == RunKind::kSubmission) classes.push_back(RunColumns(table).text(i, "scenario"));
    for (const ColumnRange& c : ranges_of(run, runs.kind, intervals[i])) {
      const double measured = measured_value(table, i, c.column);
      if (c.range && measured > 0) values.push_back({classes, c.metric, measured, *c.range});
    }
  }
  return values;
}

std::vector<SpreadLine> spreads_by_regime(const std::vector<PredictedTable>& tables) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> found;
  for (const PredictedTable& t : tables) {
    for (std::size_t i = 0; i < t.runs->runs.size(); ++i) {
      const MeasuredRun& run = t.runs->runs[i];
      if (!run.scored || !run.note.empty()) continue;
      const std::string regime(name_of(t.predictions[i].regime));
      const auto add = [&](const char* metric, double predicted) {
        const double measured = measured_value(*t.table, i, metric);
        if (measured > 0 && predicted > 0) found[{regime, metric}].push_back(std::log(measured / predicted));
      };
      add("ttft_ms", t.predictions[i].ttft_ms);
      add("tpot_ms", t.predictions[i].tpot_ms);
    }
  }
  std::vector<SpreadLine> out;
  for (auto& [key, values] : found)
    out.push_back(
        {key.first, key.second, values.size(), quantile(values, 0.05), quantile(values, 0.5), quantile(values, 0.95)});
  return out;
}

}  // namespace roofcast
