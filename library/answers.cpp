#include "library/answers.h"

#include "reports/estimate_report.h"
#include "reports/plan_report.h"
#include "reports/simulation_report.h"
#include "sim/plan/what_fits.h"

namespace roofcast::library {
namespace {

Fidelity fidelity(bool ideal) { return ideal ? Fidelity::kIdeal : Fidelity::kCalibrated; }

}  // namespace

Answer answer_estimate(const ConfigTree& tree, bool ideal, const EstimateQuestion& question) {
  const Scenario scenario = read_scenario(tree, fidelity(ideal));
  const Deployment& deployment = *scenario.deployment;
  EstimateRequest request{.batch = question.batch,
                          .prompt_tokens = question.prompt_tokens,
                          .output_tokens = question.output_tokens,
                          .context = {},
                          .replicas = scenario.serving.replicas,
                          .speculation = scenario.serving.speculation};
  if (question.context > 0) request.context = question.context;
  if (scenario.serving.disaggregation) throw ConfigError("disaggregation: simulate() knows it, estimate() does not");
  const Estimate e = estimate(scenario.deployment, request);
  Answer answer{.json = estimate_report(e, deployment, "json")};
  if (!e.memory.fits) answer.reason = e.memory.reason;
  if (deployment.memory.infeasible) answer.reason += what_would_fit(deployment);
  return answer;
}

Answer answer_simulation(const ConfigTree& tree, bool ideal) {
  const Scenario scenario = read_scenario(tree, fidelity(ideal));
  if (!scenario.workload) throw ConfigError(tree->mark, "missing key 'workload' of a scenario to simulate");
  if (const auto& infeasible = scenario.deployment->memory.infeasible)
    return {.reason = infeasible->reason + what_would_fit(*scenario.deployment)};
  const ServingMetrics metrics = simulate(scenario.deployment, *scenario.workload, scenario.serving);
  if (metrics.completed + metrics.failed == 0)
    throw ConfigError(scenario.workload->mark, "no request arrives within the 'duration'");
  Answer answer{.json = simulation_report(metrics, scenario, "json")};
  if (metrics.completed == 0) answer.reason = "every request failed";
  return answer;
}

Answer answer_plan(const ConfigTree& tree, bool ideal) {
  const PlanAnswer plan = roofcast::answer_plan(tree, {.fidelity = fidelity(ideal)});
  Answer answer{.json = plan_report(plan, "json")};
  if (plan.result.ranked.empty()) answer.reason = no_plan(plan.result, plan.plan);
  return answer;
}

}  // namespace roofcast::library
