#include "sim/plan/measured/measured_source.h"

#include <fmt/format.h>

#include "base/config_library.h"
#include "sim/plan/measured/llama_bench.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

/// Throws ConfigError if the run names a known model other than the scenario's: explaining the difference would be
/// pointless.
void refuse_other_model(const std::string& path, const std::string& run_model, const std::string& model) {
  const std::string measured = shipped_name("models", run_model);
  if (measured.empty() || measured == shipped_name("models", model)) return;
  throw ConfigError(SourceLocation{path, 0, 0},
                    fmt::format("a run of {} ({}), and the scenario is of {}; --model {} compares it "
                                "with that",
                                run_model, measured, model, measured));
}

}  // namespace

Comparison compare_with_source(const Scenario& scenario, const MeasuredSource& source) {
  if (!source.bench.empty()) {
    if (const auto llama = read_llama_bench(source.bench)) return compare_with_llama_bench(scenario, *llama);
  }
  BenchRun run =
      source.bench.empty() ? read_scrapes(source.scrapes, source.window) : read_bench_run(source.bench, source.run);
  if (source.window && source.window->base() <= 0) throw ConfigError("window: must be more than 0");
  if (!scenario.workload) throw ConfigError(source.scenario, "missing key 'workload' of a scenario to compare");
  refuse_other_model(run.path, run.model, scenario.deployment->model.name);
  return compare_with_run(scenario, std::move(run));
}

}  // namespace roofcast
