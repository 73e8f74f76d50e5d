#pragma once
// What a plan says: the winner and why, the ranking, the frontier, how to launch it.

#include "reports/verdict.h"
#include "sim/plan/search/plan_answer.h"

namespace roofcast {

ResultVerdict plan_verdict(const PlanAnswer& answer);
/// Of the winner what it is, costs and holds; where there is none, what stands in the way and what would help.
std::string outcome_text(const PlanAnswer& answer);

/// How much of an objective's range is beyond its limit, where that is known; empty where nothing is.
std::string past_limit(const ObjectiveRange& range, Seconds limit, const PlannedDeployment& planned,
                       const PlanSpec& plan);

/// By when GPUs must be ordered that are needed in this month: "now", "month 3".
std::string order_by(int month, int lead_months);

/// The winner's launch commands; empty without a winner.
struct Launch {
  std::string command{};
  std::string reason{};  ///< why there is none
};
/// Of `engine` in `form` (reports/launch_command.h). Throws ConfigError for what it cannot launch.
Launch launch_of(const PlanAnswer& answer, const std::string& engine, const std::string& form);
/// Of the winner's own engine, in shell; never throws.
Launch launch_of(const PlanAnswer& answer);

const char* unit_of(LoadKind kind);
/// What limits the winner: the perturbation that helps the most.
std::string bound_of(const PlanAnswer& answer);

}  // namespace roofcast
