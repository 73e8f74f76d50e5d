// Fits an engine's host costs to the user's own runs.

#include <fmt/format.h>

#include "sim/plan/measured/comparison.h"
#include "sim/plan/what_fits.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

/// Small compared with errors of a few percent, large for costs that the runs do not determine.
constexpr double kPull = 0.005;

}  // namespace

HostFit fit_host_to_runs(const Scenario& scenario, const std::vector<BenchRun>& runs, int max_evaluations) {
  if (scenario.deployment->memory.infeasible)
    throw Unavailable(scenario.deployment->memory.infeasible->reason + what_would_fit(*scenario.deployment));
  if (scenario.serving.disaggregation)
    throw ConfigError(
        "the host costs of two kinds of workers cannot be told apart by these runs; fit one without disaggregation");
  MeasuredRuns measured{.kind = RunKind::kAggregated, .runs = {}};
  std::string csv = "ttft_ms,tpot_ms\n";
  const ServingMetrics as_written = simulate(scenario.deployment, *scenario.workload, scenario.serving);
  for (const BenchRun& bench : runs) {
    const RunFigures figures = figures_of(bench);
    if (figures.ttft_ms <= 0 || figures.tpot_ms <= 0)
      throw ConfigError(SourceLocation{bench.path, 0, 0}, "the fit needs mean or median TTFT and TPOT");
    std::vector<LoadMismatch> mismatches;
    MeasuredRun run;
    run.row = measured.runs.size();
    run.group = bench.path;
    run.deployment = std::make_shared<Deployment>(*scenario.deployment);
    run.deployment_key = bench.path;
    run.workload = workload_of_run(scenario, bench, as_written, mismatches);
    run.serving = scenario.serving;
    measured.runs.push_back(std::move(run));
    csv += fmt::format("{},{}\n", figures.ttft_ms, figures.tpot_ms);
  }
  const CsvTable table = CsvTable::parse(csv, "runs");
  return fit_host(measured, table, scenario.deployment->engine.name,
                  {.max_evaluations = max_evaluations, .smallest_group = 1, .pull = kPull});
}

}  // namespace roofcast
