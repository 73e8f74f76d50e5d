// roofcast calibrate host: an engine's host costs from measured serving runs.

#include <algorithm>

#include <fmt/format.h>

#include "base/config_library.h"
#include "cli/calibration_json.h"
#include "cli/command.h"
#include "cli/options.h"
#include "reports/table.h"
#include "sim/plan/measured/comparison.h"
#include "sim/plan/measured/host_fit.h"
#include "sim/plan/measured/population_fit.h"

namespace roofcast::cli {
namespace po = boost::program_options;

namespace {

std::string fit_data(const HostFit& fit, const std::string& format) {
  return calibration_text(host_fit_json(fit), "host", format);
}

/// The YAML goes to stdout, so that `> host.yaml` works; the quality of the fit goes to stderr.
void print_fit(const HostFit& fit) {
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
  fmt::print(stderr, "\nloss {:.4f}\n", fit.loss);
  const auto percent = [](double fraction) {
    return fraction > 0 ? fmt::format("{:.1f} %", 100 * fraction) : std::string();
  };
  reports::Table lines({"run", "TTFT", "TPOT"});
  for (const HostFitGroup& g : fit.groups) lines.row({g.group, percent(g.fitted.ttft), percent(g.fitted.tpot)});
  fmt::print(stderr, "{}", lines.text());
}

HostFit fit_host_to_bench(const Options& options) {
  const ConfigTree tree = load_named("scenarios", options.text("scenario"), SourceLocation{"calibrate host", 0, 0});
  const Scenario scenario = read_scenario(tree, Fidelity::kCalibrated);
  if (!scenario.workload) throw ConfigError("--scenario: it has no 'workload'");
  std::vector<BenchRun> runs;
  if (options.value<std::vector<std::string>>("bench").size() < 2)
    throw ConfigError(
        "--bench: one run's TTFT and TPOT cannot tell nine host costs apart; give runs at several loads, such as one "
        "user and many");
  for (const std::string& path : options.value<std::vector<std::string>>("bench")) runs.push_back(read_bench_run(path));
  return fit_host_to_runs(scenario, runs, static_cast<int>(options.integer("evaluations", 1, 100000)));
}

/// Calls use(member, cost, value) with the costs of each member of the population; launch_speed is no time.
void for_each_cost(const PopulationCosts& costs, const auto& use) {
  for (const auto& [member, values] : costs) {
    for (std::size_t i = 0; i < population_costs().size(); ++i) {
      const PopulationCost& cost = population_costs()[i];
      const bool host = member.starts_with("host "), front_end = member.starts_with("front end ");
      const CostOwner owner = host ? CostOwner::kHost : front_end ? CostOwner::kFrontEnd : CostOwner::kEngine;
      if (cost.owner != owner) continue;
      if (cost.member == nullptr)
        use(member, "launch_speed", 1.0 / values[i], false);
      else
        use(member, std::string(cost.name), values[i], true);
    }
  }
}

/// The costs of each member of the population as YAML for an engine, a front end or a recipe.
std::string population_yaml(const PopulationCosts& costs) {
  std::string text, last;
  for_each_cost(costs, [&](const std::string& member, const std::string& cost, double value, bool time) {
    if (member != last) text += member + ":\n";
    last = member;
    text += time ? fmt::format("  {}: {:.3g} us\n", cost, value) : fmt::format("  {}: {:.2f}\n", cost, value);
  });
  return text;
}

std::string population_data(const PopulationCosts& costs, const std::string& format) {
  reports::Json out = calibration_head("host");
  out["host"] = reports::Json::array();
  for_each_cost(costs, [&](const std::string& member, const std::string& cost, double value, bool time) {
    out["host"].push_back(
        {{"member", member}, {"cost", cost}, {"value", value}, {"unit", time ? "us" : ""}, {"standing", "fitted"}});
  });
  return calibration_text(out, "host", format);
}

int fit_population(const Options& options) {
  std::vector<CsvTable> tables;
  std::vector<MeasuredRuns> runs;
  for (const std::string& path : options.value<std::vector<std::string>>("data")) {
    tables.push_back(CsvTable::read_file(path));
    runs.push_back(read_measured_runs(tables.back()));
    if (!closed_loop(runs.back().kind)) throw ConfigError(SourceLocation{path, 0, 0}, "its runs are not closed loops");
  }
  const auto rounds = options.integer("rounds", 1, 100);
  PopulationCosts costs;
  for (std::int64_t round = 0; round < rounds; ++round) {
    PopulationFit fit;
    for (std::size_t i = 0; i < runs.size(); ++i) fit.add(runs[i], tables[i]);
    costs = fit.fit([](const MeasuredRun&) { return true; });
    fmt::print(stderr, "round {}: loss {:.4f} before\n", round + 1, fit.loss());
    for (MeasuredRuns& table : runs) {
      for (MeasuredRun& run : table.runs) {
        if (in_population(run)) set_costs(run, costs);
      }
    }
  }
  fmt::print("{}", options.formatted([&](const std::string& format) {
    return format == "table" ? population_yaml(costs) : population_data(costs, format);
  }));
  return kDone;
}

}  // namespace

int run_calibrate_host(std::span<const std::string> arguments) {
  Options options(
      "roofcast calibrate host --data FILE.csv [--data FILE.csv ...]\n"
      "       roofcast calibrate host --scenario SCENARIO.yaml --bench FILE.json [--bench FILE.json ...]",
      "Host costs from measured serving runs, kernels held as they are. With --data, those of all engines and front\n"
      "ends as one population, from tables of closed loops. With --bench, those of one scenario's engine.");
  options.add().add_options()("data", po::value<std::vector<std::string>>()->composing(),
                              "FILE.csv: table of closed loops; repeatable")(
      "scenario", po::value<std::string>(), "NAME|FILE: scenario that --bench measured")(
      "bench", po::value<std::vector<std::string>>()->composing(),
      "FILE: of a load generator, as `compare --bench` takes it; repeatable")(
      "rounds", po::value<std::string>()->default_value("4"), "N: times to simulate the runs again, with --data")(
      "evaluations", po::value<std::string>()->default_value("160"),
      "N: maximum evaluations of the loss, with --bench");
  options.add_format_flags();
  if (!options.parse(arguments)) return kDone;
  if (options.has("bench")) {
    if (options.has("data")) throw ConfigError("--data: not with --bench");
    if (!options.has("scenario")) throw ConfigError("--scenario: missing; what the runs of --bench measured");
    const HostFit fit = fit_host_to_bench(options);
    if (options.format() == "table" && !options.has("columns"))
      print_fit(fit);
    else
      fmt::print("{}", options.formatted([&](const std::string& format) { return fit_data(fit, format); }));
    return kDone;
  }
  if (!options.has("data")) throw ConfigError("--data: missing");
  return fit_population(options);
}

}  // namespace roofcast::cli
