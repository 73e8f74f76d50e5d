#pragma once
// All that `plan` says about a plan file: the ranking, what would help the winner, the fleet over the day.

#include <optional>

#include "sim/plan/search/fleet_plan.h"
#include "sim/plan/search/growth.h"
#include "sim/plan/search/owned.h"
#include "sim/plan/search/sensitivity.h"

namespace roofcast {

struct PlanAnswer {
  PlanSpec plan;
  PlanResult result;
  Sensitivities sensitivities{};                   ///< of the winner
  std::optional<FleetPlan> fleet = std::nullopt;   ///< for a load that changes over the day; the rest is for its peak
  std::optional<OwnedShare> owned = std::nullopt;  ///< GPUs at hand; the rest is for what they leave
  std::vector<GrowthPath> growth{};                ///< of the best rows, the cheapest first, where the load grows
  std::optional<double> share{};                   ///< USD/h, of instances that other services share; none: whole ones
};

/// How much of the answer is wanted.
enum class PlanDetail { kRanking, kAll };

PlanAnswer answer_plan(const ConfigTree& tree, const SearchOptions& options, PlanDetail detail = PlanDetail::kAll);

/// Makes a row of the ranking its first, and sets what it costs at other confidences.
void put_first(PlanResult& result, std::size_t row, const PlanSpec& plan);
/// What would help the winner of an answer, and what its plan says without effect.
void add_details(const ConfigTree& tree, PlanAnswer& answer);

}  // namespace roofcast
