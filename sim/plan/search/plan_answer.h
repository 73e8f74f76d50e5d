#pragma once
// The full answer to a plan file: the ranking, what would help the winner, the fleet over the day.

#include <optional>

#include "sim/plan/search/fleet_plan.h"
#include "sim/plan/search/growth.h"
#include "sim/plan/search/owned.h"
#include "sim/plan/search/sensitivity.h"

namespace roofcast {

struct PlanAnswer {
  PlanSpec plan;
  PlanResult result;
  Sensitivities sensitivities{};  ///< of the winner
  std::optional<FleetPlan> fleet =
      std::nullopt;  ///< for a load that changes over the day; other members are for its peak
  std::optional<OwnedShare> owned = std::nullopt;  ///< owned GPUs; other members are for the remaining load
  std::vector<GrowthPath> growth{};                ///< of the best rows, cheapest first, if the load grows
  std::optional<double> share{};                   ///< USD/h for a share of instances; empty: whole instances
};

/// Which parts of the answer to compute.
enum class PlanDetail { kRanking, kAll };

PlanAnswer answer_plan(const ConfigTree& tree, const SearchOptions& options, PlanDetail detail = PlanDetail::kAll);

/// Moves a row to the top of the ranking, and sets its cost at other confidences.
void put_first(PlanResult& result, std::size_t row, const PlanSpec& plan);
/// Adds what would help the winner, and the plan's settings without effect.
void add_details(const ConfigTree& tree, PlanAnswer& answer);

}  // namespace roofcast
