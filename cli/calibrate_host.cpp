// roofcast calibrate host: an engine's host costs from measured serving runs.

#include <algorithm>

#include <fmt/format.h>

#include "base/config_library.h"
#include "cli/command.h"
#include "cli/options.h"
#include "reports/table.h"
#include "sim/plan/measured/comparison.h"
#include "sim/plan/measured/host_fit.h"

namespace roofcast {
namespace po = boost::program_options;

namespace {

void print_fit(const HostFit& fit, bool runs) {
  fmt::print("host:\n");
  for (const HostParameter& p : host_parameters()) {
    const double us = (fit.host.*p.member).in(kMicrosecond);
    if (p.optional && us == 0) continue;
    const bool left = std::find(fit.unexercised.begin(), fit.unexercised.end(), p.name) != fit.unexercised.end();
    const char* note = left                      ? "  # as it was: no run of the data shows it"
                       : us >= 0.999 * p.high_us ? "  # at its limit"
                                                 : "";
    fmt::print("  {}: {:.4g} us{}\n", p.name, us, note);
  }
  for (const auto& [name, member] :
       {std::pair{"worker_time", &HostCosts::worker_time}, {"piece_time", &HostCosts::piece_time}}) {
    if (fit.host.*member > Seconds(0))
      fmt::print("  {}: {:.4g} us  # as it was: not fitted\n", name, (fit.host.*member).in(kMicrosecond));
  }
  fmt::print("\nloss {:.4f}\n", fit.loss);
  const auto percent = [](double fraction) {
    return fraction > 0 ? fmt::format("{:.1f} %", 100 * fraction) : std::string();
  };
  if (runs) {
    Table lines({"run", "TTFT", "TPOT"});
    for (const HostFitGroup& g : fit.groups) lines.row({g.group, percent(g.fitted.ttft), percent(g.fitted.tpot)});
    fmt::print("{}", lines.text());
    return;
  }
  Table lines({"group", "rows", "TPOT", "TTFT", "value", "TPOT left out", "TTFT left out", "value left out"});
  for (const HostFitGroup& g : fit.groups) {
    lines.row({g.group + (g.counted ? "" : " *"), std::to_string(g.rows), percent(g.fitted.tpot),
               percent(g.fitted.ttft), percent(g.fitted.value), percent(g.held_out.tpot), percent(g.held_out.ttft),
               percent(g.held_out.value)});
  }
  fmt::print("{}", lines.text());
  if (std::any_of(fit.groups.begin(), fit.groups.end(), [](const HostFitGroup& g) { return !g.counted; }))
    fmt::print("* not counted: too few rows, or more than a third of its values twice off for another reason\n");
}

HostFit fit_host_to_bench(const Options& options) {
  const ConfigTree tree = load_named("scenarios", options.text("scenario"), Mark{"calibrate host", 0, 0});
  const Scenario scenario = read_scenario(tree, Fidelity::kCalibrated);
  if (!scenario.workload) throw ConfigError("--scenario: it has no 'workload'");
  std::vector<BenchRun> runs;
  for (const std::string& path : options.value<std::vector<std::string>>("bench")) runs.push_back(read_bench_run(path));
  return fit_host_to_runs(scenario, runs, static_cast<int>(options.integer("evaluations", 1, 100000)));
}

HostFit fit_host_to_table(const Options& options) {
  for (const std::string flag : {"engine", "sibling", "front-end"}) {  // unknown names are told before all the work
    if (options.has(flag)) load_named("engines", options.text(flag), Mark{"--" + flag, 0, 0});
  }
  const CsvTable table = CsvTable::read_file(options.text("data"));
  MeasuredRuns runs = read_measured_runs(table);
  return fit_host(runs, table, options.text("engine"),
                  {.max_evaluations = static_cast<int>(options.integer("evaluations", 1, 100000)),
                   .starts = static_cast<int>(options.integer("starts", 1, 1000)),
                   .seed = static_cast<std::uint64_t>(options.integer("seed", 0, 1LL << 53)),
                   .cross_validate = options.has("cross-validate"),
                   .sibling = options.has("sibling") ? options.text("sibling") : "",
                   .front_end = options.has("front-end") ? options.text("front-end") : ""});
}

}  // namespace

int run_calibrate_host(std::span<const std::string> arguments) {
  Options options(
      "roofcast calibrate host --engine NAME --data FILE.csv [--cross-validate]\n"
      "       roofcast calibrate host --scenario SCENARIO.yaml --bench FILE.json [--bench FILE.json ...]",
      "Fits the host block of an engine profile to measured serving runs, kernels held as they are.\n"
      "Prints the block, and the error of every group: fitted on all groups, and on all the others.");
  options.add().add_options()("engine", po::value<std::string>(), "NAME of the profile")(
      "data", po::value<std::string>(), "FILE.csv")("scenario", po::value<std::string>(),
                                                    "FILE or name: what --bench measured")(
      "bench", po::value<std::vector<std::string>>()->composing(),
      "FILE: JSON of vllm bench serve, SGLang bench_serving or AIPerf; repeatable")("cross-validate",
                                                                                    "leave every group out once")(
      "sibling", po::value<std::string>(), "NAME of a profile whose costs are expected where the runs leave one open")(
      "front-end", po::value<std::string>(),
      "NAME of a profile whose front end is expected instead: its costs of requests and of tokens")(
      "evaluations", po::value<std::string>()->default_value("160"), "N, of the loss in one descent, at most")(
      "starts", po::value<std::string>()->default_value("4"), "N descents, all but one from seeded points")(
      "seed", po::value<std::string>()->default_value("1"), "N");
  if (!options.parse(arguments)) return kDone;
  if (options.has("bench")) {
    for (const char* flag : {"engine", "data", "cross-validate", "sibling", "front-end"}) {
      if (options.has(flag)) throw ConfigError(fmt::format("--{}: not with --bench", flag));
    }
    if (!options.has("scenario")) throw ConfigError("--scenario: missing; what the runs of --bench measured");
    print_fit(fit_host_to_bench(options), true);
    return kDone;
  }
  for (const char* flag : {"engine", "data"}) {
    if (!options.has(flag)) throw ConfigError(fmt::format("--{}: missing", flag));
  }
  print_fit(fit_host_to_table(options), false);
  return kDone;
}

}  // namespace roofcast
