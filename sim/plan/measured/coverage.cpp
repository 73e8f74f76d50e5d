#include "sim/plan/measured/coverage.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error_summary.h"
#include "sim/plan/parallel.h"
#include "sim/plan/serving_intervals.h"
#include "sim/plan/system_spread.h"

namespace roofcast {
namespace {

LoadRegime regime_of(const MeasuredRun& run) {
  const double tokens = run.workload.prompt_tokens.mean() + run.workload.output_tokens.mean();
  return load_regime(*run.deployment, run.serving.replicas, run.workload.arrivals.concurrency, tokens);
}

}  // namespace

RunIntervals intervals_of(const Scenario& scenario) {
  RunIntervals out;
  const ServingMetrics metrics = simulate(scenario.deployment, *scenario.workload, scenario.serving);
  for (const MetricInterval& i : serving_intervals(scenario, metrics)) {
    const RunIntervals::Range range{i.low, i.high};
    if (i.metric == "mean_ttft_ms") out.ttft_ms = range;
    if (i.metric == "mean_tpot_ms") out.tpot_ms = range;
    if (i.metric == "output_throughput") out.output_throughput = range;
  }
  return out;
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
    const std::vector<std::string> classes{"all", run.deployment->engine.name, run.classes.gpu,
                                           std::string(name_of(regime_of(run)))};
    const auto add = [&](const char* metric, const std::optional<RunIntervals::Range>& range) {
      const double measured = measured_value(table, i, metric);
      if (range && measured > 0) values.push_back({classes, metric, measured, *range});
    };
    add("ttft_ms", intervals[i].ttft_ms);
    add("tpot_ms", intervals[i].tpot_ms);
  }
  return values;
}

std::vector<SpreadLine> spreads_by_regime(const std::vector<PredictedTable>& tables) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> found;
  for (const PredictedTable& t : tables) {
    for (std::size_t i = 0; i < t.runs->runs.size(); ++i) {
      const MeasuredRun& run = t.runs->runs[i];
      if (!run.scored || !run.note.empty()) continue;
      const std::string regime(name_of(regime_of(run)));
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
