#include "sim/plan/search/plan_notes.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/config_reader.h"
#include "base/text.h"
#include "hw/gpu_spec.h"
#include "sim/model/feed_forward_model.h"
#include "sim/plan/idle_settings.h"
#include "sim/plan/search/condition.h"
#include "sim/plan/search/load_test.h"

namespace roofcast {
namespace {

/// Notes a winner that is below the required confidence.
void note_confidence(const PlannedDeployment& winner, const PlanSpec& plan, bool at_limit,
                     std::vector<std::string>& notes) {
  if (!winner.probability || *winner.probability >= plan.confidence - 1e-9) return;
  const bool none_larger = at_limit && plan.goal != PlanGoal::kThroughput;
  notes.push_back(fmt::format("the objectives hold in {:.3g} % of the draws, fewer than the {:.3g} % asked{}",
                              100 * *winner.probability, 100 * plan.confidence,
                              none_larger ? ": the search allows no larger fleet" : ""));
}

/// Notes common layouts for models with experts that the search does not vary.
void note_layouts(const PlannedDeployment& winner, const PlanSpec& plan, std::vector<std::string>& notes) {
  const std::vector<LayerKind>& layers = winner.candidate.scenario.deployment->model.layers;
  const bool has_experts = std::any_of(layers.begin(), layers.end(), [](const LayerKind& kind) {
    return model_of(kind.feed_forward)->facts().experts > 1;
  });
  if (!has_experts || plan.max_gpus < 8) return;
  std::vector<std::string> missing;
  for (const auto& [key, name] : {std::pair{"parallelism.attention_dp", "attention_dp"}, {"parallelism.ep", "ep"}}) {
    const bool varied = std::any_of(plan.space.axes.begin(), plan.space.axes.end(),
                                    [key = key](const SweepAxis& axis) { return axis.keys.front() == key; });
    if (!varied && !value_at(plan.space.scenario, key)) missing.push_back(name);
  }
  if (!plan.disaggregated) missing.push_back("modes: [aggregated, disaggregated]");
  if (missing.size() < 2) return;
  notes.push_back(
      fmt::format("not searched: {}; a model with experts is often served for less with them", join(missing, ", ")));
}

/// Whether the search lists a GPU that is announced but not sold yet.
bool lists_announced(const SweepSpec& space) {
  return std::any_of(space.axes.begin(), space.axes.end(), [](const SweepAxis& axis) {
    return axis.keys.front() == "gpu" &&
           std::any_of(axis.values.begin(), axis.values.end(), [](const std::vector<ConfigTree>& value) {
             return parse_gpu_spec(ConfigReader(resolve_named("hardware", value.front()), "a GPU")).announced;
           });
  });
}

}  // namespace

void add_plan_notes(const ConfigTree& tree, PlanAnswer& answer) {
  std::vector<std::string>& notes = answer.result.notes;
  const auto note = [&](std::string_view key, std::string_view why) {
    const ConfigTree value = value_at(tree, key);
    if (value && value->kind != ConfigNode::Kind::kNull) notes.push_back(fmt::format("{}{}", key, why));
  };
  note("gpu", " changes nothing here: the search's 'gpus' says what may be bought");
  for (const SweepAxis& axis : answer.plan.space.axes) {
    if (const std::string& key = axis.keys.front(); key != "gpu")
      note(key, " changes nothing here: the search varies it");
  }
  for (const char* key : {"parallelism.replicas", "parallelism.dp"})
    note(key, " changes nothing here: a plan finds the number of replicas; search.max_gpus limits it");
  if (!answer.fleet && answer.plan.availability <= 0) {
    note("autoscaling",
         " changes nothing here: the load is steady, so the fleet stays as it is; an autoscaler is planned for a "
         "'profile' of the arrivals, a trace, or 'clients'");
    note("failures", " changes nothing here: 'search.availability' plans the spare replicas for them");
  }
  if (value_at(tree, "search.announced") && !lists_announced(answer.plan.space))
    note("search.announced", " changes nothing here: no GPU of the search is announced");
  if (answer.plan.confidence <= 0)
    note("search.load_uncertainty", " changes nothing here: a plan with 'confidence: 0' trusts the forecast");
  if (answer.plan.grams_co2_per_kwh <= 0)
    note("search.power_usage_effectiveness", " changes nothing here: 'carbon_intensity' is not given");
  const PlannedDeployment& winner = answer.result.ranked.front();
  if (winner.candidate.scenario.deployment->fidelity == Fidelity::kIdeal)
    note("search.confidence", " changes nothing here: the datasheet's roofline has no spread");
  const auto& load = winner.candidate.scenario.workload;
  const LoadKind kind = load && !answer.fleet ? load_kind(*load) : LoadKind::kWhole;
  constexpr const char* kOwnLength = " changes nothing here: a plan's runs are as long as its percentiles need";
  if (kind == LoadKind::kRate || kind == LoadKind::kUsers) {
    for (const char* key : {"workload.requests", "workload.duration"}) note(key, kOwnLength);
  }
  if (kind == LoadKind::kRate) note("workload.warmup_requests", kOwnLength);
  Scenario played = winner.candidate.scenario;
  played.serving.replicas = winner.replicas;
  if (answer.fleet) played.serving.fleet.autoscaling = answer.fleet->scaling;
  note_confidence(winner, answer.plan, answer.result.at_limit, notes);
  note_layouts(winner, answer.plan, notes);
  for (std::string& line : idle_settings(answer.plan.space.scenario, played)) notes.push_back(std::move(line));
}

}  // namespace roofcast
