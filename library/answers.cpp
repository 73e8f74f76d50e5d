#include "library/answers.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/watch.h"
#include "reports/comparison_report.h"
#include "reports/estimate_report.h"
#include "reports/idle_estimate.h"
#include "reports/ladder_report.h"
#include "reports/plan_report.h"
#include "reports/question.h"
#include "reports/result_schema.h"
#include "reports/run_observers.h"
#include "reports/services_report.h"
#include "reports/simulation_report.h"
#include "reports/sweep_report.h"
#include "sim/plan/idle_settings.h"
#include "sim/plan/measured/measured_source.h"
#include "sim/plan/search/idle_in_run.h"
#include "sim/plan/steady_load.h"
#include "sim/plan/what_fits.h"
#include "sim/step/deployment.h"

namespace roofcast::library {
namespace {

Fidelity fidelity(bool ideal) { return ideal ? Fidelity::kIdeal : Fidelity::kCalibrated; }

std::vector<std::string> notes_of(const ConfigTree& tree, const Scenario& scenario) {
  std::vector<std::string> notes = idle_settings(tree, scenario);
  notes.insert(notes.end(), scenario.doubts.begin(), scenario.doubts.end());
  return notes;
}

/// Forwards to two observers; either may be null.
class Both final : public Observer {
 public:
  Both(Observer* one, Observer* other) : one_(one), other_(other) {}
  void on_step(const StepRecord& step) override {
    each([&](Observer& o) { o.on_step(step); });
  }
  void on_transfer(const TransferRecord& transfer) override {
    each([&](Observer& o) { o.on_transfer(transfer); });
  }
  void on_fleet(const FleetRecord& fleet) override {
    each([&](Observer& o) { o.on_fleet(fleet); });
  }
  void on_request(const RequestRecord& request) override {
    each([&](Observer& o) { o.on_request(request); });
  }

 private:
  void each(const auto& call) {
    if (one_ != nullptr) call(*one_);
    if (other_ != nullptr) call(*other_);
  }
  Observer *one_, *other_;
};

}  // namespace

std::string text_of(const Answer& answer) {
  if (!answer.text.empty()) return answer.text;
  return answer.json.is_null() ? "" : reports::result_text(answer.json);
}

Answer answer_estimate(const ConfigTree& tree, bool ideal, const EstimateQuestion& question, SpecCache* specs) {
  const Scenario scenario =
      specs == nullptr ? read_scenario(tree, fidelity(ideal)) : read_scenario(tree, fidelity(ideal), *specs);
  const Deployment& deployment = *scenario.deployment;
  EstimateRequest request{.batch = question.batch,
                          .prompt_tokens = question.prompt_tokens,
                          .output_tokens = question.output_tokens,
                          .context = {},
                          .replicas = scenario.serving.replicas,
                          .speculation = scenario.serving.speculation};
  if (question.context > 0) request.context = question.context;
  request.media = usual_media(deployment.model);
  request.prompt_tokens += media_tokens(request.media);
  if (scenario.serving.disaggregation) throw ConfigError("disaggregation: supported by simulate(), not by estimate()");
  Estimate e = estimate(scenario.deployment, request);
  e.steady = steady_load(scenario.deployment, request);
  Answer answer{.json = reports::estimate_json(e, deployment), .notes = notes_of(tree, scenario)};
  answer.json["question"] = reports::question_json(tree, fidelity(ideal), request);
  for (std::string& line : reports::idle_in_estimate(tree, scenario, fidelity(ideal), request, e, specs))
    answer.notes.push_back(std::move(line));
  if (!e.memory.fits) answer.reason = e.memory.reason;
  if (deployment.memory.infeasible) answer.reason += what_would_fit(deployment);
  return answer;
}

Answer answer_simulation(const ConfigTree& tree, bool ideal, const SimulationQuestion& question) {
  const Scenario scenario = read_scenario(tree, fidelity(ideal));
  if (!scenario.workload) throw ConfigError(tree->location, "missing key 'workload' of a scenario to simulate");
  Answer answer{.notes = notes_of(tree, scenario)};
  if (const auto& infeasible = scenario.deployment->memory.infeasible) {
    answer.reason = infeasible->reason + what_would_fit(*scenario.deployment);
    return answer;
  }
  if (question.requests != nullptr)
    *question.requests = static_cast<std::uint64_t>(std::max<std::int64_t>(0, scenario.workload->requests));
  reports::IntervalObserver over_time;
  Both both(question.observer, question.intervals ? &over_time : nullptr);
  const bool seen = question.observer != nullptr || question.intervals;
  const ServingMetrics metrics =
      simulate(scenario.deployment, *scenario.workload, scenario.serving, seen ? &both : nullptr);
  if (metrics.completed + metrics.failed == 0)
    throw ConfigError(scenario.workload->location, "no request arrives within the 'duration'");
  answer.json = question.intervals ? reports::simulation_json(metrics, scenario, over_time.json(),
                                                              serving_intervals(scenario, metrics))
                                   : reports::simulation_json(metrics, scenario);
  answer.json["question"] = reports::question_json(tree, fidelity(ideal));
  for (std::string& line : idle_in_run(tree, scenario, fidelity(ideal), metrics))
    answer.notes.push_back(std::move(line));
  if (metrics.load.saturated) answer.notes.push_back("saturated: " + reports::saturation_words(metrics));
  if (metrics.completed == 0) answer.reason = "every request failed";
  return answer;
}

namespace {

Answer answer_of_services(const ConfigTree& tree, const SearchOptions& options) {
  const ServicesAnswer plan = answer_services(tree, options);
  Answer answer{.json = reports::services_json(plan), .reason = reports::no_services_plan(plan)};
  answer.json["question"] = reports::question_json(tree, options.fidelity);
  for (const ServiceAnswer& service : plan.services) {
    for (const std::string& note : service.answer.result.notes) answer.notes.push_back(service.name + ": " + note);
  }
  return answer;
}

}  // namespace

Answer answer_plan(const ConfigTree& tree, bool ideal, const PlanQuestion& question) {
  const SearchOptions options{.fidelity = fidelity(ideal), .prune = question.prune, .confirm = true};
  if (has_services(tree)) return answer_of_services(tree, options);
  const PlanAnswer plan = roofcast::answer_plan(tree, options);
  Answer answer{.json = reports::plan_json(plan), .notes = plan.result.notes};
  answer.json["question"] = reports::question_json(tree, fidelity(ideal));
  if (plan.result.ranked.empty()) answer.reason = reports::no_plan(plan.result, plan.plan);
  return answer;
}

Answer answer_ladder(const ConfigTree& tree, bool ideal, int concurrency, int requests) {
  Answer answer{
      .json = reports::ladder_json(climb(tree, fidelity(ideal), {.concurrency = concurrency, .requests = requests}))};
  answer.json["question"] = reports::question_json(tree, fidelity(ideal));
  return answer;
}

Answer answer_sweep(const SweepSpec& sweep, bool ideal, const SweepQuestion& question) {
  SweepStore store(question.store);
  const std::atomic<bool> go{false};
  try {
    const SweepOutcome outcome = run_sweep(sweep, fidelity(ideal), store, go, question.progress);
    std::string text = reports::sweep_report(sweep, outcome, store, "json", fidelity(ideal));
    Answer answer{.json = reports::Json::parse(text)};
    answer.text = std::move(text);
    if (!outcome.errors.empty())
      answer.notes.push_back(fmt::format("{} combinations are not possible; the first: {}", outcome.errors.size(),
                                         outcome.errors.begin()->second));
    return answer;
  } catch (const Stopped&) {
    store.commit();  // keep the finished points
    throw;
  }
}

Answer answer_comparison(const ConfigTree& tree, bool ideal, const MeasuredSource& source) {
  const Scenario scenario = read_scenario(tree, fidelity(ideal));
  MeasuredSource of = source;
  of.scenario = tree->location;
  Answer answer{.json = reports::comparison_json(compare_with_source(scenario, of), scenario)};
  answer.json["question"] = reports::question_json(tree, fidelity(ideal));
  return answer;
}

}  // namespace roofcast::library
