#include "sim/plan/measured/serving_accuracy.h"
#include "sim/plan/parallel.h"
#include "sim/step/deployment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include <fmt/format.h>

namespace roofcast {
namespace {

/// Pairs of one group and metric.
struct Sample {
  std::vector<double> predicted, measured;
  bool dense = true;
};
using Samples = std::map<std::pair<std::string, std::string>, Sample>;
using GroupOf = std::function<std::string(const MeasuredRun&, std::size_t row)>;

void add(Samples& samples, const std::string& group, const std::string& metric, bool dense, double predicted,
         double measured) {
  if (!(measured > 0) || !(predicted > 0)) return;
  Sample& s = samples[{group, metric}];
  s.predicted.push_back(predicted);
  s.measured.push_back(measured);
  s.dense = dense;
}

Samples collect(const MeasuredRuns& runs, const CsvTable& table, const std::vector<RowPrediction>& rows,
                const GroupOf& group_of) {
  Samples samples;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const MeasuredRun& run = runs.runs[i];
    if (!run.scored || !rows[i].prediction) continue;
    const std::string group = group_of(run, i);
    const RunPrediction& p = *rows[i].prediction;
    if (closed_loop(runs.kind)) {
      add(samples, group, "tpot_ms", run.dense, p.tpot_ms, measured_value(table, i, "tpot_ms"));
      add(samples, group, "ttft_ms", run.dense, p.ttft_ms, measured_value(table, i, "ttft_ms"));
    } else if (runs.kind == RunKind::kSteady) {
      const std::array predicted{p.itl_ms, p.output_tokens_per_s, p.power_w, p.joules_per_output_token()};
      for (std::size_t k = 0; k < kSteadyMetrics.size(); ++k)
        add(samples, group, std::string(kSteadyMetrics[k]), run.dense, predicted[k],
            measured_value(table, i, kSteadyMetrics[k]));
    } else if (runs.kind == RunKind::kSubmission) {
      // With arrivals the throughput is the offered rate: what is predicted is whether the limits are met.
      if (!run.workload.objectives)
        add(samples, group, run.metric, run.dense, p.value, measured_value(table, i, run.metric));
    } else {
      add(samples, group, run.metric, run.dense, p.value, measured_value(table, i, "value"));
    }
  }
  return samples;
}

/// Mean of the groups with at least `least` rows, with equal weights.
std::vector<AccuracyLine> means_of(const std::vector<AccuracyLine>& lines, const std::string& name, bool dense_only,
                                   std::size_t least) {
  std::map<std::string, std::vector<const AccuracyLine*>> by_metric;
  for (const AccuracyLine& line : lines) {
    if (line.errors.rows >= least && (line.dense || !dense_only)) by_metric[line.metric].push_back(&line);
  }
  std::vector<AccuracyLine> means;
  for (const auto& [metric, of] : by_metric) {
    AccuracyLine mean{.group = name, .metric = metric, .errors = {}};
    const double n = static_cast<double>(of.size());
    double ranked = 0, correlations = 0;
    for (const AccuracyLine* line : of) {
      mean.errors.rows += line->errors.rows;
      mean.errors.mape += line->errors.mape / n;
      mean.errors.median += line->errors.median / n;
      mean.errors.p90 += line->errors.p90 / n;
      mean.errors.bias += line->errors.bias / n;
      if (!std::isfinite(line->spearman)) continue;
      correlations += line->spearman;
      ++ranked;
    }
    mean.spearman = correlations / ranked;  // NaN where no group can be ranked
    means.push_back(mean);
  }
  return means;
}

/// Adds means over groups of five rows or more, and over all groups if some are smaller.
void add_means(std::vector<AccuracyLine>& lines, const std::string& name, bool dense_only) {
  constexpr std::size_t kRows = 5;
  const bool small = std::any_of(lines.begin(), lines.end(), [&](const AccuracyLine& line) {
    return line.errors.rows < kRows && (line.dense || !dense_only);
  });
  std::vector<AccuracyLine> means = means_of(lines, name, dense_only, kRows);
  if (small) {
    const std::vector<AccuracyLine> any = means_of(lines, name + ", small ones too", dense_only, 1);
    means.insert(means.end(), any.begin(), any.end());
  }
  lines.insert(lines.end(), means.begin(), means.end());
}

std::vector<AccuracyLine> lines_of(const Samples& samples) {
  std::vector<AccuracyLine> lines;
  for (const auto& [key, s] : samples) {
    lines.push_back({key.first,
                     key.second,
                     summarize(s.predicted, s.measured),
                     rank_correlation(s.predicted, s.measured),
                     s.dense,
                     {}});
  }
  return lines;
}

/// Runs of one deployment with different host costs do not share prices.
std::string costs_key(const EngineSpec& engine) {
  const HostCosts& h = engine.host;
  return fmt::format("|{}.{}.{}.{}.{}.{}.{}.{}", engine.launch_speed, h.step_time.base(), h.sequence_time.base(),
                     h.scheduler_time.base(), h.scheduler_sequence_time.base(), h.prefill_step_time.base(),
                     h.launch_time.base(), h.rank_skew.base());
}

/// A run waits for memory if its requests, at mean length, do not all fit in the cache.
std::string load_of(RunKind kind, const MeasuredRun& run) {
  const Deployment& d = *run.deployment;
  const double tokens = run.workload.prompt_tokens.mean() + run.workload.output_tokens.mean();
  const double in_flight = closed_loop(kind) || kind == RunKind::kSteady ? run.workload.arrivals.concurrency
                                                                         : static_cast<double>(run.workload.requests);
  const double room = d.memory.max_batch(tokens, d.engine.block_size) * d.sharding.attention_dp;
  if (room < in_flight) return "KV-limited";
  return in_flight <= 4.0 * d.sharding.gpus() ? "light load" : "loaded";
}

}  // namespace

std::vector<RowPrediction> predict_all(const MeasuredRuns& runs,
                                       const std::function<bool(const MeasuredRun&)>& wanted) {
  std::map<std::string, std::vector<std::size_t>> by_deployment;
  std::vector<RowPrediction> rows(runs.runs.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].note = runs.runs[i].note;
    if (rows[i].note.empty() && (!wanted || wanted(runs.runs[i])))
      by_deployment[runs.runs[i].deployment_key + costs_key(runs.runs[i].deployment->engine)].push_back(i);
  }
  std::vector<std::vector<std::size_t>> tasks;
  for (auto& [key, members] : by_deployment) tasks.push_back(std::move(members));
  parallel_for_each_index(tasks.size(), [&](std::size_t t) {
    const auto pricer = make_model_pricer(runs.runs[tasks[t].front()].deployment);
    for (std::size_t i : tasks[t]) {
      try {
        rows[i].prediction = predict_run(runs.runs[i], *pricer);
      } catch (const ConfigError& error) {
        rows[i].note = error.what();
      }
      if (rows[i].prediction && !(rows[i].prediction->ttft_ms > 0)) {
        rows[i].prediction.reset();
        rows[i].note = "no request completed: all are longer than the cache or the model's context";
      }
    }
  });
  return rows;
}

std::vector<AccuracyLine> accuracy_by_group(const MeasuredRuns& runs, const CsvTable& table,
                                            const std::vector<RowPrediction>& rows) {
  std::vector<AccuracyLine> lines =
      lines_of(collect(runs, table, rows, [](const MeasuredRun& run, std::size_t) { return run.group; }));
  const auto floors = measurement_floors(runs, table);
  for (AccuracyLine& line : lines) line.floor = floors.at({line.group, line.metric});
  std::vector<AccuracyLine> dense = lines;
  add_means(dense, "dense groups", true);
  add_means(lines, "all groups", false);
  for (const AccuracyLine& line : dense) {
    if (line.group.starts_with("dense groups")) lines.push_back(line);
  }
  return lines;
}

std::vector<AccuracyLine> accuracy_by(const MeasuredRuns& runs, const CsvTable& table,
                                      const std::vector<RowPrediction>& rows,
                                      const std::function<std::string(const MeasuredRun&)>& group_of,
                                      const std::string& mean) {
  std::vector<AccuracyLine> lines =
      lines_of(collect(runs, table, rows, [&](const MeasuredRun& run, std::size_t) { return group_of(run); }));
  add_means(lines, mean, false);
  return lines;
}

std::vector<AccuracyLine> accuracy_by_load(const MeasuredRuns& runs, const CsvTable& table,
                                           const std::vector<RowPrediction>& rows) {
  return lines_of(
      collect(runs, table, rows, [&](const MeasuredRun& run, std::size_t) { return load_of(runs.kind, run); }));
}

}  // namespace roofcast
