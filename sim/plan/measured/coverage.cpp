#include "sim/plan/measured/coverage.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/error_summary.h"
#include "sim/plan/measured/left_out.h"
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

namespace {

/// What one measured value needs beside the other causes; 0 on the side on which it does not lie.
struct Need {
  double below = 0, above = 0;
  std::string class_name;
};
Need need_of(double measured, double predicted, const RunIntervals::Range& range, const LogSpread& rest) {
  const double error = std::log(measured / predicted);
  const auto beside = [](double whole, double part) { return std::max(0.0, whole * whole - part * part); };
  const double side = error < 0 ? beside(std::log(range.low / predicted), rest.low)
                                : beside(std::log(range.high / predicted), rest.high);
  const double need = std::sqrt(std::max(0.0, error * error - side));
  return error < 0 ? Need{need, 0, {}} : Need{0, need, {}};
}

/// The largest 95 % quantile of one side over the fits that each leave one class out.
double rest_of(const std::vector<Need>& needs, double Need::*side) {
  std::set<std::string> classes;
  for (const Need& need : needs) classes.insert(need.class_name);
  double largest = 0;
  for (const std::string& left_out : classes) {
    std::vector<double> others;
    for (const Need& need : needs)
      if (need.class_name != left_out || classes.size() == 1) others.push_back(need.*side);
    largest = std::max(largest, quantile(others, 0.95));
  }
  return largest;
}

}  // namespace

std::vector<SpreadLine> rests_by_regime(const std::vector<PredictedTable>& tables) {
  std::map<std::pair<std::string, std::string>, std::vector<Need>> found;
  for (const PredictedTable& t : tables) {
    for (std::size_t i = 0; i < t.intervals.size(); ++i) {
      const MeasuredRun& run = t.runs->runs[i];
      const LoadRegime regime = t.intervals[i].regime;
      if (!run.scored || !run.note.empty() || (regime != LoadRegime::kLight && regime != LoadRegime::kLoaded)) continue;
      const auto add = [&](const char* metric, double predicted, const LogSpread& rest) {
        const double measured = measured_value(*t.table, i, metric);
        const auto range = t.intervals[i].of(std::string("mean_") + metric);
        if (!(measured > 0 && predicted > 0) || !range) return;
        Need need = need_of(measured, predicted, *range, rest);
        need.class_name = class_of(run, {"version", "harness"});
        found[{std::string(name_of(regime)), metric}].push_back(std::move(need));
      };
      add("ttft_ms", t.predictions[i].ttft_ms, regime_spread(regime).ttft);
      add("tpot_ms", t.predictions[i].tpot_ms, regime_spread(regime).tpot);
    }
  }
  std::vector<SpreadLine> out;
  for (const auto& [key, needs] : found) {
    std::vector<double> either;
    for (const Need& need : needs) either.push_back(need.above - need.below);
    out.push_back({key.first + " (rest)", key.second, needs.size(), 0 - rest_of(needs, &Need::below),
                   quantile(either, 0.5), rest_of(needs, &Need::above)});
  }
  return out;
}

}  // namespace roofcast
