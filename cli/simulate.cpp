// roofcast simulate: a scenario under load.

#include <chrono>
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/output_file.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "reports/bench_file.h"
#include "reports/openmetrics.h"
#include "reports/perfetto.h"
#include "reports/question.h"
#include "reports/run_observers.h"
#include "reports/simulation_report.h"
#include "sim/plan/all_cores.h"
#include "sim/plan/deployment_flags.h"
#include "sim/plan/failures.h"
#include "sim/plan/idle_settings.h"
#include "sim/plan/parallel_hint.h"
#include "sim/plan/scenario.h"
#include "sim/plan/search/idle_in_run.h"
#include "sim/plan/what_fits.h"
#include "sim/step/deployment.h"

namespace roofcast::cli {
namespace po = boost::program_options;
namespace {

/// Writes --requests-out while requests end.
class RequestWriter final : public Observer {
 public:
  explicit RequestWriter(const std::string& path) : file_("--requests-out", path) {
    file_.write(reports::request_csv_header());
  }
  void on_request(const RequestRecord& request) override { file_.write(reports::request_csv_line(request)); }
  void close() { file_.close(); }

 private:
  OutputFile file_;
};

/// Forwards every event to each observer.
class Observers final : public Observer {
 public:
  void add(Observer* observer) { all_.push_back(observer); }
  Observer* one() { return all_.empty() ? nullptr : this; }  ///< null if there are no observers
  void on_step(const StepRecord& step) override {
    for (Observer* o : all_) o->on_step(step);
  }
  void on_transfer(const TransferRecord& transfer) override {
    for (Observer* o : all_) o->on_transfer(transfer);
  }
  void on_request(const RequestRecord& request) override {
    for (Observer* o : all_) o->on_request(request);
  }
  void on_fleet(const FleetRecord& fleet) override {
    for (Observer* o : all_) o->on_fleet(fleet);
  }

 private:
  std::vector<Observer*> all_;
};

ConfigTree scenario_tree(const Options& options) {
  if (!options.has("scenario") && !options.has("model") && !options.has("set"))
    throw ConfigError("simulate: which scenario? roofcast simulate SCENARIO.yaml, or a shipped one: " +
                      join(names_of("scenarios"), ", "));
  ConfigTree tree = options.document("scenario", "scenarios");
  if (options.has("trace")) {
    tree = with_trace(tree, options.text("trace"), options.text("trace-format"));
  } else if (options.has("trace-format")) {
    throw ConfigError("--trace-format: needs --trace FILE");
  }
  return options.scenario(tree);
}

void write_extras(const Options& options, const Scenario& scenario, const ServingMetrics& metrics,
                  const reports::TimelineObserver& timeline, const reports::IntervalObserver& intervals,
                  const reports::LatencyHistory& history) {
  if (options.has("perfetto")) {
    write_file("--perfetto", options.text("perfetto"), reports::perfetto_json(timeline.timeline()));
    if (timeline.full())
      fmt::print(stderr, "--perfetto: only the first steps and requests are in the timeline; there were too many\n");
  }
  if (options.has("bench-out")) {
    const reports::BenchFormat& format = reports::find_bench_format(options.text("bench-format"), "--bench-format");
    write_file("--bench-out", options.text("bench-out"), format.write(metrics, scenario));
  }
  if (options.has("openmetrics")) {
    write_file("--openmetrics", options.text("openmetrics"),
               reports::openmetrics_text(metrics, scenario.deployment->model.name, intervals.json(), history));
  }
}

void add_simulate_flags(Options& options) {
  options.add_deployment_flags();
  options.add_output_flags();
  options.add().add_options()("trace", po::value<std::string>(),
                              "FILE: requests (times and lengths), in place of the scenario's workload")(
      "trace-format", po::value<std::string>(),
      "azure | mooncake | bailian | burstgpt | vidur | agentic | csv (default: known by the first line)")(
      "requests-out", po::value<std::string>(), "FILE.csv: one line per request")(
      "intervals",
      "90 % intervals of latencies and throughput; in the JSON also the queue, batch, cache and tokens over time")(
      "perfetto", po::value<std::string>(),
      "FILE.json: steps and requests as a timeline for ui.perfetto.dev or chrome://tracing")(
      "openmetrics", po::value<std::string>(), "FILE: the run in vLLM's metric names, as OpenMetrics text")(
      "bench-out", po::value<std::string>(), "FILE: the run as the result file of a load generator")(
      "bench-format", po::value<std::string>()->default_value("vllm"),
      "vllm | sglang | aiperf | genai-perf | guidellm | loadgen | llama-bench: format of --bench-out")(
      "seed", po::value<std::string>(), "N: seed of the random numbers (default 0)");
  options.positional("scenario", 1);
}

}  // namespace

int run_simulate(std::span<const std::string> arguments) {
  Options options(
      "roofcast simulate SCENARIO.yaml [options]",
      "A scenario under load, request by request. The same seed gives the same output; wall time goes to stderr.");
  add_simulate_flags(options);
  if (!options.parse(arguments)) return kDone;
  if (options.has("bench-format") && !options.has("bench-out"))
    throw ConfigError("--bench-format: needs --bench-out FILE");
  const reports::BenchFormat& bench_format = reports::find_bench_format(options.text("bench-format"), "--bench-format");
  const ConfigTree tree = scenario_tree(options);
  const Scenario scenario = read_scenario(tree, options.fidelity());
  if (!scenario.workload) throw ConfigError(tree->location, "missing key 'workload' of a scenario to simulate");
  if (options.has("bench-out") && bench_format.check != nullptr) bench_format.check(scenario);
  for (const std::string& line : idle_settings(tree, scenario)) fmt::print(stderr, "{}\n", line);
  for (const std::string& doubt : scenario.doubts) fmt::print(stderr, "{}\n", doubt);
  if (const std::string hint = parallel_hint(*scenario.deployment); !hint.empty()) fmt::print(stderr, "{}\n", hint);
  if (scenario.deployment->memory.infeasible)
    throw Unavailable(scenario.deployment->memory.infeasible->reason + what_would_fit(*scenario.deployment));
  std::unique_ptr<RequestWriter> writer;
  if (options.has("requests-out")) writer = std::make_unique<RequestWriter>(options.text("requests-out"));
  Observers observers;
  reports::TimelineObserver timeline;
  reports::IntervalObserver intervals;
  reports::LatencyHistory history;
  if (writer) observers.add(writer.get());
  if (options.has("perfetto")) observers.add(&timeline);
  if (options.has("intervals") || options.has("openmetrics")) observers.add(&intervals);
  if (options.has("openmetrics")) observers.add(&history);
  const auto start = std::chrono::steady_clock::now();
  ServingOptions serving = scenario.serving;
  serving.cores = all_cores();
  const ServingMetrics metrics = simulate(scenario.deployment, *scenario.workload, serving, observers.one());
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  if (metrics.completed + metrics.failed == 0)
    throw ConfigError(scenario.workload->location, "no request arrives within the 'duration'");
  if (writer) writer->close();
  for (const std::string& line : idle_in_run(tree, scenario, options.fidelity(), metrics))
    fmt::print(stderr, "{}\n", line);
  const bool wanted = options.has("intervals");
  const auto uncertain = wanted ? serving_intervals(scenario, metrics) : std::vector<MetricInterval>{};
  if (wanted && uncertain.empty() && metrics.completed > 0)
    fmt::print(stderr, "--intervals: no 90 % intervals: {}\n",
               options.fidelity() == Fidelity::kIdeal ? "the ideal roofline has no intervals"
                                                      : "the run is too long to repeat it several times");
  options.write_report([&](const std::string& format) {
    return reports::simulation_report(metrics, scenario, format, wanted ? intervals.json() : nullptr, uncertain,
                                      reports::question_json(tree, options.fidelity()));
  });
  write_extras(options, scenario, metrics, timeline, intervals, history);
  fmt::print(stderr, "simulated {} requests in {:.3f} s\n", metrics.completed + metrics.failed, wall.count());
  if (metrics.load.saturated) fmt::print(stderr, "saturated: {}\n", reports::saturation_words(metrics));
  if (metrics.failed > 0)
    fmt::print(
        stderr, "{} of {} requests failed: {}\n", metrics.failed, metrics.completed + metrics.failed,
        failure_words(metrics, *scenario.deployment,
                      scenario.serving.disaggregation ? scenario.serving.disaggregation->prefill.get() : nullptr));
  return metrics.completed == 0 && metrics.failed > 0 ? kNoAnswer : kDone;
}

}  // namespace roofcast::cli
