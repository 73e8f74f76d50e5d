// roofcast estimate: one deployment in closed form.

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/options.h"
#include "reports/estimate_report.h"
#include "sim/plan/estimate.h"
#include "sim/plan/idle_settings.h"
#include "sim/plan/scenario.h"
#include "sim/plan/what_fits.h"

namespace roofcast {
namespace po = boost::program_options;

namespace {

/// `parallelism.replicas` and the flags of the request.
EstimateRequest request_of(const Options& options, const Scenario& scenario) {
  EstimateRequest r;
  if (scenario.serving.disaggregation)
    throw ConfigError("estimate: knows no workers apart; 'roofcast simulate' does, or leave 'disaggregation' out");
  r.batch = static_cast<int>(options.integer("batch", 1, 1000000));
  r.prompt_tokens = static_cast<int>(options.integer("prompt-tokens", 1, 100000000));
  r.output_tokens = static_cast<int>(options.integer("output-tokens", 1, 100000000));
  if (options.has("context")) r.context = static_cast<int>(options.integer("context", 1, 100000000));
  r.replicas = scenario.serving.replicas;
  r.speculation = scenario.serving.speculation;
  return r;
}

/// The numbers are those of the arithmetic; the engine would run fewer at a time, or refuse the request.
void warn_of_limits(const Deployment& d, const EstimateRequest& r) {
  if (d.fidelity != Fidelity::kIdeal && r.batch > d.seats())
    fmt::print(stderr, "a batch of {} is more than {} runs at a time ({}): the others would wait\n", r.batch,
               d.engine.name, d.seats());
  const double longest = d.engine.max_model_len > 0 ? d.engine.max_model_len : d.model.max_context;
  const double tokens =
      std::max(static_cast<double>(r.prompt_tokens) + r.output_tokens, static_cast<double>(r.context.value_or(0)));
  if (longest > 0 && tokens > longest)
    fmt::print(stderr, "{} tokens are more than {} ({:.0f}): an engine would refuse them\n", tokens,
               d.engine.max_model_len > 0 ? "engine.max_model_len" : "the context of " + d.model.name, longest);
}

}  // namespace

int run_estimate(std::span<const std::string> arguments) {
  Options options("roofcast estimate --model NAME --gpu NAME [options]",
                  "TTFT, TPOT, memory and cost of a batch of equal requests, operator by operator.");
  options.add_deployment_flags();
  options.add_output_flags();
  options.add().add_options()("batch", po::value<std::string>()->default_value("1"),
                              "sequences at a time on one replica")(
      "prompt-tokens", po::value<std::string>()->default_value("1024"), "tokens of each prompt")(
      "output-tokens", po::value<std::string>()->default_value("128"), "tokens of each output")(
      "context", po::value<std::string>(),
      "tokens in the cache at the decode step (default: prompt + half of the output)")(
      "no-kv-cache", "every token recomputes the whole sequence");
  if (!options.parse(arguments)) return kDone;
  for (const char* flag : {"model", "gpu"}) {
    if (!options.has(flag) && !options.has("set"))
      throw ConfigError(fmt::format("--{}: missing; which {}?", flag, flag));
  }
  ConfigTree tree = options.scenario(make_map({}, Mark{"command line", 0, 0}));
  if (options.has("no-kv-cache")) tree = with_assignment(tree, "engine.kv_cache=false", "--no-kv-cache");
  const Scenario scenario = read_scenario(tree, options.fidelity());
  for (const std::string& line : idle_settings(tree, scenario)) fmt::print(stderr, "{}\n", line);
  for (const std::string& doubt : scenario.doubts) fmt::print(stderr, "{}\n", doubt);
  const Estimate e = estimate(scenario.deployment, request_of(options, scenario));
  const bool refused = !e.memory.fits && options.fidelity() != Fidelity::kIdeal;
  options.write_report(estimate_report(e, *scenario.deployment, options.format()));
  if (!e.memory.fits) {
    const bool weights = scenario.deployment->memory.infeasible.has_value();
    fmt::print(stderr, "{}{}\n", e.memory.reason, weights ? what_would_fit(*scenario.deployment) : "");
  }
  warn_of_limits(*scenario.deployment, request_of(options, scenario));
  return refused ? kNoAnswer : kDone;
}

}  // namespace roofcast
