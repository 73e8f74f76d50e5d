#include "sim/plan/measured/published_runs.h"

#include <map>

#include "base/error.h"
#include "sim/plan/measured/plausibility.h"
#include "sim/plan/parallel.h"
#include "sim/plan/scenario.h"
#include "sim/serve/simulation.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

std::vector<double> values_of(const ServingMetrics& m) {
  return {m.ttft_ms.mean(), m.ttft_ms.percentile(50), m.tpot_ms.mean(), m.tpot_ms.percentile(50),
          m.output_tokens / m.duration.base()};
}

PublishedRun predict(const CsvTable& table, std::size_t row, std::size_t column, bool intervals) {
  PublishedRun run;
  const SourceLocation location = table.location(row, column);
  try {
    const Scenario s = read_scenario(published_scenario(table, row), Fidelity::kCalibrated);
    run.engine = s.deployment->engine.name;
    run.gpu = s.deployment->gpu.name;
    run.group = run.engine + " " + run.gpu;
    if (s.deployment->memory.infeasible) {
      run.note = s.deployment->memory.infeasible->reason;
    } else if (!s.workload) {
      run.note = "no workload";
    } else {
      const auto figure = [&](const char* name) {
        const auto at = table.find(name);
        return at ? table.number(row, *at, 0.0) : 0.0;
      };
      const double tpot = figure("mean_tpot_ms") > 0 ? figure("mean_tpot_ms") : figure("median_tpot_ms");
      run.doubt = published_doubt(s, figure("mean_ttft_ms"), tpot, figure("output_throughput"));
      const ServingMetrics m = simulate(s.deployment, *s.workload, s.serving);
      if (m.completed > 0) run.predictions = values_of(m);
      if (m.completed > 0 && intervals) run.intervals = intervals_of(s);
      if (m.completed == 0) run.note = "no request completed";
    }
  } catch (const ConfigError& error) {
    throw ConfigError(location, std::string("its scenario: ") + error.what());
  }
  return run;
}

struct Sample {
  std::vector<double> predicted, measured;
};

}  // namespace

bool holds_scenarios(const CsvTable& table) {
  const auto column = table.find("scenario");
  if (!column) return false;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (table.at(row, *column).find(':') != std::string_view::npos) return true;
  }
  return table.rows() == 0;
}

ConfigTree published_scenario(const CsvTable& table, std::size_t row) {
  return parse_config_text(std::string(table.at(row, table.column("scenario"))), table.path());
}

std::vector<PublishedRun> predict_published(const CsvTable& table, bool intervals) {
  const std::size_t column = table.column("scenario");
  std::vector<PublishedRun> runs(table.rows());
  parallel_for_each_index(table.rows(), [&](std::size_t row) { runs[row] = predict(table, row, column, intervals); });
  return runs;
}

std::vector<Covered> covered_published(const CsvTable& table, const std::vector<PublishedRun>& runs) {
  std::vector<Covered> values;
  for (std::size_t row = 0; row < runs.size(); ++row) {
    const PublishedRun& run = runs[row];
    if (!run.doubt.empty()) continue;
    for (const char* metric : kPublishedMetrics) {
      const auto at = table.find(metric);
      const double measured = at ? table.number(row, *at, 0.0) : 0.0;
      const std::optional<RunIntervals::Range> range = run.intervals.of(metric);
      if (range && measured > 0) values.push_back({{"all", run.engine, run.gpu}, metric, measured, *range});
    }
  }
  return values;
}

std::vector<AccuracyLine> accuracy_of_published(const CsvTable& table, const std::vector<PublishedRun>& runs) {
  std::map<std::pair<std::string, std::size_t>, Sample> samples;
  for (std::size_t k = 0; k < std::size(kPublishedMetrics); ++k) {
    const auto column = table.find(kPublishedMetrics[k]);
    for (std::size_t row = 0; column && row < runs.size(); ++row) {
      const double measured = table.number(row, *column, 0.0);
      if (runs[row].predictions.empty() || !runs[row].doubt.empty() || !(measured > 0)) continue;
      for (const std::string& group : {runs[row].group, std::string("~all")}) {  // sorts behind the groups
        samples[{group, k}].predicted.push_back(runs[row].predictions[k]);
        samples[{group, k}].measured.push_back(measured);
      }
    }
  }
  std::vector<AccuracyLine> lines;
  for (const auto& [key, s] : samples) {
    lines.push_back({.group = key.first == "~all" ? "all" : key.first,
                     .metric = kPublishedMetrics[key.second],
                     .errors = summarize(s.predicted, s.measured),
                     .spearman = rank_correlation(s.predicted, s.measured)});
  }
  return lines;
}

}  // namespace roofcast
