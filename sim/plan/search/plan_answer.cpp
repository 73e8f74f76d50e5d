#include "sim/plan/search/plan_answer.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/config_reader.h"
#include "sim/plan/search/condition.h"
#include "sim/plan/search/confidence.h"
#include "sim/plan/search/plan_notes.h"
#include "sim/plan/search/risk.h"

namespace roofcast {
namespace {

/// The day of a changing load: from its profile, or as recorded.
std::optional<DiurnalPlan> day_of(const ConfigTree& tree, std::optional<DiurnalPlan> diurnal, const PlanSpec& plan) {
  if (diurnal && plan.disaggregated) {
    throw ConfigError(value_at(tree, "search.modes")->location,
                      "separate prefill and decode workers can only be planned for a steady load; leave "
                      "'disaggregated' out of 'modes', or the arrivals' 'profile'");
  }
  if (diurnal && plan.goal == PlanGoal::kThroughput) {
    throw ConfigError(
        value_at(tree, "search.goal")->location,
        "'goal: throughput' seeks the highest load, and the arrivals' 'profile' says what the load is; take "
        "'cost' or 'gpus', or leave the profile out");
  }
  if (!diurnal) diurnal = recorded_day(plan);
  if (plan.slice > Seconds(0) && !(diurnal && diurnal->recorded))
    throw ConfigError(tree->location, "the search's 'slice' divides the day of a longer trace, or of 'clients'");
  return diurnal;
}

std::size_t row_of(const PlanResult& result, std::uint64_t candidate) {
  const auto chosen = std::find_if(result.ranked.begin(), result.ranked.end(),
                                   [&](const PlannedDeployment& p) { return p.candidate.index == candidate; });
  return static_cast<std::size_t>(chosen - result.ranked.begin());
}

/// Moves the row that costs least over the whole period of growth to the top.
void plan_growth(PlanAnswer& answer) {
  const double elsewhere = answer.owned ? answer.owned->planned.load : 0;
  PricerPool& pricers = *answer.result.pricers;
  constexpr int kMostTries = 3;
  for (int tries = 0; tries < kMostTries; ++tries) {
    answer.growth = growth_paths(answer.plan, answer.result, elsewhere);
    if (answer.growth.empty() || answer.growth.front().row == 0 || answer.fleet) return;  // a day has chosen its own
    PlannedDeployment& row = answer.result.ranked[answer.growth.front().row];
    const bool sure = size_row_by_draws(row, row.replicas, answer.plan, pricers);
    put_first(answer.result, answer.growth.front().row, answer.plan);
    answer.result.at_limit = !sure;
  }
  answer.growth = growth_paths(answer.plan, answer.result, elsewhere);  // for the rows in their new order
}

}  // namespace

void put_first(PlanResult& result, std::size_t row, const PlanSpec& plan) {
  if (row == 0) return;
  const auto first = result.ranked.begin(), chosen = first + static_cast<std::ptrdiff_t>(row);
  std::rotate(first, chosen, chosen + 1);
  price_confidence(result, 0, plan, *result.pricers);
}

void add_details(const ConfigTree& tree, PlanAnswer& answer) {
  PricerPool& pricers = *answer.result.pricers;
  PlannedDeployment& winner = answer.result.ranked.front();
  if (!winner.in_all_draws) simulate_all_draws(winner, answer.plan, pricers);
  answer.sensitivities = sensitivities(winner, pricers);
  add_plan_notes(tree, answer);
}

namespace {

void tell_length(const PlanSpec& plan, const SearchOptions& options) {
  constexpr std::int64_t kLong = 20000;  // usual are 2,000, for a p99
  const ConfigTree* objectives = plan.space.scenario->find("objectives");
  if (!options.tell || objectives == nullptr || !*objectives) return;
  const std::int64_t requests =
      requests_needed(parse_objectives(ConfigReader(*objectives, "objectives")), plan.goodput);
  if (requests > kLong)
    options.tell(
        fmt::format("each run of this plan has {} requests, so that 20 lie beyond its rarest percentile: it "
                    "may take many minutes",
                    requests));
}

}  // namespace

PlanAnswer answer_plan(const ConfigTree& asked, const SearchOptions& options, PlanDetail detail) {
  const std::optional<OwnedPlan> owned = plan_owned(asked, options);
  const ConfigTree tree = owned ? owned->rest : asked;
  const std::optional<DiurnalPlan> profile = diurnal_plan(tree);
  PlanAnswer answer{.plan = parse_plan(profile ? profile->peak : tree), .result = {}};
  const std::optional<DiurnalPlan> diurnal = day_of(tree, profile, answer.plan);
  tell_length(answer.plan, options);
  answer.result =
      search_capacity(diurnal && diurnal->recorded ? sought_plan(answer.plan, *diurnal) : answer.plan, options);
  if (owned && owned->share) answer.owned = owned->share;
  if (owned && !owned->note.empty()) answer.result.notes.push_back(owned->note);
  if (answer.result.ranked.empty() || detail == PlanDetail::kRanking) return answer;
  if (diurnal) {  // the answer is the deployment with the cheapest day, not the cheapest peak
    answer.fleet = plan_fleet(answer.plan, *diurnal, answer.result);
    put_first(answer.result, row_of(answer.result, answer.fleet->candidate), answer.plan);
  } else {
    size_winner_by_draws(answer.result, answer.plan, *answer.result.pricers);
  }
  plan_growth(answer);
  add_details(tree, answer);
  return answer;
}

}  // namespace roofcast
