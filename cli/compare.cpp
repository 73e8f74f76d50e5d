// roofcast compare: a measured run against its prediction.

#include <chrono>

#include <fmt/format.h>

#include "base/config_reader.h"
#include "cli/command.h"
#include "cli/options.h"
#include "reports/comparison_report.h"
#include "reports/question.h"
#include "sim/plan/measured/measured_source.h"

namespace roofcast::cli {
namespace po = boost::program_options;

namespace {

MeasuredSource source_of(const Options& options) {
  const bool bench = options.has("bench"), scrapes = options.has("prometheus");
  if (bench == scrapes)
    throw ConfigError(bench
                          ? "--prometheus: not with --bench; one run at a time"
                          : "--bench: missing; the file of a load generator, or --prometheus with metrics of a server");
  MeasuredSource source;
  if (bench) source.bench = options.text("bench");
  if (scrapes) source.scrapes = options.value<std::vector<std::string>>("prometheus");
  if (options.has("run")) {
    if (scrapes) throw ConfigError("--run: only with --bench");
    source.run = options.integer("run", 1, 1'000'000);
  }
  if (options.has("window")) {
    if (bench) throw ConfigError("--window: only with --prometheus");
    source.window = parse_time(options.text("window"), "--window");
  }
  return source;
}

}  // namespace

int run_compare(std::span<const std::string> arguments) {
  Options options(
      "roofcast compare SCENARIO.yaml --bench FILE | --prometheus FILE [options]",
      "Compares a measured run with the prediction and looks for what explains the difference: the scenario's load\n"
      "against the run's, and one changed assumption at a time, simulated again. Wall time goes to stderr.");
  options.add_deployment_flags();
  options.add_output_flags();
  options.add().add_options()(
      "bench", po::value<std::string>(),
      "FILE: result of vllm bench serve, SGLang bench_serving, AIPerf, GenAI-Perf, GuideLLM, MLPerf "
      "LoadGen or llama-bench, recognized by its content")("run", po::value<std::string>(),
                                                           "N: which run, where the file has several")(
      "prometheus", po::value<std::vector<std::string>>()->composing(),
      "FILE: a saved /metrics page of vLLM or SGLang; give it twice, before and after the load")(
      "window", po::value<std::string>(), "TIME: time that the metrics cover, such as '10 min'; gives their rates")(
      "seed", po::value<std::string>(), "N: seed of the random numbers (default 0)");
  options.positional("scenario", 1);
  if (!options.parse(arguments)) return kDone;
  if (!options.has("scenario"))
    throw ConfigError(
        "compare: which scenario? roofcast compare SCENARIO.yaml --bench FILE; roofcast import FILE makes one");
  MeasuredSource source = source_of(options);
  const auto start = std::chrono::steady_clock::now();
  const ConfigTree tree = options.scenario(options.document("scenario", "scenarios"));
  source.scenario = tree->location;
  const Scenario scenario = read_scenario(tree, options.fidelity());
  const Comparison comparison = compare_with_source(scenario, source);
  options.write_report([&](const std::string& format) {
    return reports::comparison_report(comparison, scenario, format, reports::question_json(tree, options.fidelity()));
  });
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  fmt::print(stderr, "compared in {:.3f} s\n", wall.count());
  return kDone;
}

}  // namespace roofcast::cli
