#include "sim/plan/search/plan_notes.h"

#include "sim/plan/idle_settings.h"
#include "sim/plan/search/condition.h"

namespace roofcast {

void add_plan_notes(const ConfigTree& tree, PlanAnswer& answer) {
  std::vector<std::string>& notes = answer.result.notes;
  const auto note = [&](const char* key, const char* why) {
    const ConfigTree value = value_at(tree, key);
    if (value && value->kind != ConfigNode::Kind::kNull) notes.push_back(std::string(key) + why);
  };
  for (const char* key : {"parallelism.replicas", "parallelism.dp"})
    note(key, " changes nothing here: a plan finds the number of replicas; search.max_gpus limits it");
  if (!answer.fleet && answer.plan.availability <= 0) {
    note("autoscaling",
         " changes nothing here: the load is steady, so the fleet stays as it is; an autoscaler is planned for a "
         "'profile' of the arrivals, a trace, or 'clients'");
    note("failures", " changes nothing here: 'search.availability' plans the spare replicas for them");
  }
  const PlannedDeployment& winner = answer.result.ranked.front();
  Scenario played = winner.candidate.scenario;
  played.serving.replicas = winner.replicas;
  if (answer.fleet) played.serving.fleet.autoscaling = answer.fleet->scaling;
  for (std::string& line : idle_settings(answer.plan.space.scenario, played)) notes.push_back(std::move(line));
}

}  // namespace roofcast
