// roofcast compare: a measured run beside the prediction.

#include <chrono>

#include <fmt/format.h>

#include "base/config_library.h"
#include "cli/command.h"
#include "cli/options.h"
#include "reports/comparison_report.h"

namespace roofcast {
namespace po = boost::program_options;

namespace {

/// A run that names a model we know, and another one than the scenario's: what would explain the difference is
/// nonsense.
void refuse_other_model(const BenchRun& run, const std::string& model) {
  const std::string measured = shipped_name("models", run.model);
  if (measured.empty() || measured == shipped_name("models", model)) return;
  throw ConfigError(Mark{run.path, 0, 0},
                    fmt::format("a run of {} ({}), and the scenario is of {}; --model {} compares it with that",
                                run.model, measured, model, measured));
}

}  // namespace

int run_compare(std::span<const std::string> arguments) {
  Options options(
      "roofcast compare SCENARIO.yaml --bench FILE.json [options]",
      "A measured run beside the prediction, and what explains the difference: the scenario's load against\n"
      "the run's, and one changed assumption at a time, simulated again. Wall time goes to stderr.");
  options.add_deployment_flags();
  options.add_output_flags();
  options.add().add_options()("bench", po::value<std::string>(),
                              "FILE: JSON of vllm bench serve --save-result, SGLang bench_serving or AIPerf")(
      "seed", po::value<std::string>(), "N (default 0)");
  options.positional("scenario", 1);
  if (!options.parse(arguments)) return kDone;
  if (!options.has("scenario"))
    throw ConfigError("compare: which scenario? roofcast compare SCENARIO.yaml --bench FILE");
  if (!options.has("bench")) throw ConfigError("--bench: missing; the JSON of the measured run");
  const auto start = std::chrono::steady_clock::now();
  BenchRun run = read_bench_run(options.text("bench"));
  const Scenario scenario =
      read_scenario(options.scenario(options.document("scenario", "scenarios")), options.fidelity());
  if (!scenario.workload) throw ConfigError("compare: the scenario has no 'workload'");
  refuse_other_model(run, scenario.deployment->model.name);
  const Comparison comparison = compare_with_run(scenario, std::move(run));
  options.write_report([&](const std::string& format) { return comparison_report(comparison, scenario, format); });
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  fmt::print(stderr, "compared in {:.3f} s\n", wall.count());
  return kDone;
}

}  // namespace roofcast
