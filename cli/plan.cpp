// roofcast plan: the cheapest deployment that meets the objectives.

#include <chrono>
#include <cstdio>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/options.h"
#include "reports/launch_command.h"
#include "reports/plan_report.h"
#include "reports/plan_verdict.h"
#include "reports/question.h"
#include "reports/services_report.h"
#include "sim/plan/search/services.h"
#include "sim/step/deployment.h"

namespace roofcast::cli {
namespace po = boost::program_options;

namespace {

ConfigTree plan_tree(const Options& options) {
  if (!options.has("plan")) throw ConfigError("plan: which file? roofcast plan PLAN.yaml");
  ConfigTree tree = options.scenario(options.document("plan", "plans"), [](const auto& plan, const std::string& key,
                                                                           const auto& value, const auto& origin) {
    return key.starts_with("search.") ? with_value(plan, key, value, origin)
                                      : with_constraint(plan, key, value, origin);
  });
  if (options.has("confidence"))
    tree = with_assignment(tree, "search.confidence=" + options.text("confidence"), "--confidence");
  return tree;
}

/// Plans several services.
int run_services(Options& options, const ConfigTree& tree, const SearchOptions& search) {
  const auto start = std::chrono::steady_clock::now();
  const ServicesAnswer answer =
      answer_services(tree, search, options.has("emit") ? PlanDetail::kRanking : PlanDetail::kAll);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  if (answer.joint && options.has("emit")) {
    options.write(reports::services_launch(answer, options.text("emit"), options.text("emit-as")));
  } else {
    options.write_report([&](const std::string& format) {
      return reports::services_report(answer, format, options.has("wide"),
                                      reports::question_json(tree, options.fidelity()));
    });
  }
  for (const ServiceAnswer& service : answer.services) {
    if (!options.has("emit") && options.format() != "csv") continue;  // the others have them in the verdict
    for (const std::string& note : service.answer.result.notes) fmt::print(stderr, "{}: {}\n", service.name, note);
  }
  if (!answer.complete()) throw Unavailable(reports::no_services_plan(answer));
  if (!options.has("emit")) fmt::print(stderr, "planned in {:.3f} s\n", wall.count());
  return kDone;
}

}  // namespace

int run_plan(std::span<const std::string> arguments) {
  Options options(
      "roofcast plan PLAN.yaml [options]",
      "The cheapest deployment that meets the objectives: searched, simulated, ranked. Wall time goes to stderr.");
  options.add_deployment_flags();
  options.add_output_flags();
  options.add().add_options()(
      "emit", po::value<std::string>(),
      "ENGINE: vllm | sglang | trtllm | llama-cpp: print only the launch commands of the best deployment")(
      "emit-as", po::value<std::string>()->default_value("shell"), "shell | compose | kubernetes")(
      "confidence", po::value<std::string>(),
      "P: probability that all objectives are met (default 0.9; 0: not judged)")("wide", "every column of the tables")(
      "seed", po::value<std::string>(), "N: seed of the random numbers (default 0)")(
      "exhaustive", "simulate every candidate, whatever the bounds say");
  options.positional("plan", 1);
  if (!options.parse(arguments)) return kDone;
  const ConfigTree tree = plan_tree(options);
  if (options.has("emit")) reports::check_launch_engine(options.text("emit"));
  if (options.has("emit-as") && !options.has("emit"))
    throw ConfigError("--emit-as: needs --emit ENGINE; --format json has the result");
  const SearchOptions search{.fidelity = options.fidelity(),
                             .prune = !options.has("exhaustive"),
                             .confirm = true,
                             .tell = [](const std::string& line) { fmt::print(stderr, "{}\n", line); }};
  if (has_services(tree)) return run_services(options, tree, search);
  const auto start = std::chrono::steady_clock::now();
  const PlanAnswer answer = answer_plan(tree, search, options.has("emit") ? PlanDetail::kRanking : PlanDetail::kAll);
  const bool found = !answer.result.ranked.empty();
  if (found && options.has("emit")) {
    const PlannedDeployment& winner = answer.result.ranked.front();
    const std::string& engine = winner.candidate.scenario.deployment->engine.name;
    if (engine != options.text("emit"))
      throw ConfigError(fmt::format("--emit: this plan is for {}; add --engine {} to plan for that engine", engine,
                                    options.text("emit")));
    options.write(reports::launch_of(answer, options.text("emit"), options.text("emit-as")).command);
    return kDone;
  }
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  options.write_report([&](const std::string& format) {
    return reports::plan_report(answer, format, options.has("wide"), reports::question_json(tree, options.fidelity()));
  });
  if (options.format() == "csv") {  // the others have them in the verdict
    for (const std::string& note : answer.result.notes) fmt::print(stderr, "{}\n", note);
  }
  if (!found) throw Unavailable(reports::no_plan(answer.result, answer.plan));
  fmt::print(stderr, "planned in {:.3f} s\n", wall.count());
  return kDone;
}

}  // namespace roofcast::cli
