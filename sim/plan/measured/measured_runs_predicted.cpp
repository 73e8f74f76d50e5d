// Predicts measured runs.

#include <algorithm>

#include "base/config_reader.h"
#include "base/error.h"
#include "sim/plan/fleet_cost.h"
#include "sim/plan/measured/measured_runs.h"
#include "sim/plan/objectives.h"
#include "sim/plan/shared_pricer.h"
#include "sim/plan/steady_rate.h"
#include "sim/plan/truth.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

double value_of(const MeasuredRun& run, const RunPrediction& p, const ServingMetrics& m) {
  const double seconds = m.duration.base();
  const Sharding& sharding = run.deployment->sharding;
  if (run.metric == "ttft_ms") return p.ttft_ms;
  if (run.metric == "tpot_ms") return p.tpot_ms;
  if (run.metric == "itl_ms") return m.itl_ms.mean();
  if (run.metric == "e2e_ms") return seconds * 1e3;
  if (run.metric == "tokens_per_s") return m.output_tokens / seconds;
  if (run.metric == "total_tokens_per_s") return (m.input_tokens + m.output_tokens) / seconds;
  if (run.metric == "output_tokens_per_s") return m.output_tokens / seconds;
  if (run.metric == "tokens_per_s_per_gpu") return m.output_tokens / seconds / sharding.gpus();
  return 0;
}

}  // namespace

Scenario scenario_of(const MeasuredRun& run) {
  Scenario s;
  s.deployment = run.deployment;
  s.workload = run.workload;
  s.serving = run.serving;
  return s;
}

RunPrediction predict_run(const MeasuredRun& run, StepPricer& pricer) {
  SIM_CHECK(run.note.empty(), "a run with a note cannot be predicted");
  ServingOptions options = run.serving;
  options.pricer = [&](const std::shared_ptr<const Deployment>& deployment) -> std::unique_ptr<StepPricer> {
    if (deployment != run.deployment) return make_model_pricer(deployment);
    return std::make_unique<SharedPricer>(pricer);
  };
  const ServingMetrics m = simulate(run.deployment, run.workload, options);
  if (m.completed == 0) return {};
  RunPrediction p{.ttft_ms = m.ttft_ms.mean(), .tpot_ms = m.tpot_ms.mean(), .value = 0};
  p.value = value_of(run, p, m);
  p.regime = regime_of(scenario_of(run), m);
  p.itl_ms = m.itl_ms.percentile(50);
  const double steady = steady_output_rate(run.workload, m);
  p.output_tokens_per_s = steady > 0 ? steady : m.output_tokens / m.duration.base();
  p.p99_ttft_ms = m.ttft_ms.percentile(99);
  p.p99_tpot_ms = m.tpot_ms.percentile(99);
  if (run.workload.objectives) {
    const std::vector<Objective> limits = parse_objectives(ConfigReader(run.workload.objectives, "objectives"));
    p.met = std::all_of(limits.begin(), limits.end(), [&](const Objective& o) { return observed(o, m) <= o.limit; });
  }
  const FleetCost cost = fleet_cost(m, *run.deployment, options.replicas, options.disaggregation);
  p.power_w = mean_power(cost, m).value;
  p.busy_share = cost.busy_share;
  if (cost.busy_share > 0)
    p.utilization = {.compute = cost.mfu / cost.busy_share, .memory = cost.mbu / cost.busy_share};
  return p;
}

}  // namespace roofcast
