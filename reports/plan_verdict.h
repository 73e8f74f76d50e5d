#pragma once
// The verdict of a plan: the winner and why, the ranking, the frontier, the launch commands.

#include "reports/verdict.h"
#include "sim/plan/search/plan_answer.h"

namespace roofcast::reports {

ResultVerdict plan_verdict(const PlanAnswer& answer);
/// The winner: what it is, costs and serves. Without a winner: what prevents one, and what would help.
std::string outcome_text(const PlanAnswer& answer);

/// The part of an objective's range beyond its limit; empty if unknown or none.
std::string past_limit(const ObjectiveRange& range, Seconds limit, const PlannedDeployment& planned,
                       const PlanSpec& plan);

/// When GPUs that are needed in this month must be ordered: "now", "month 3".
std::string order_by(int month, int lead_months);

/// The winner's launch commands; empty without a winner.
struct Launch {
  std::string command{};
  std::string reason{};  ///< why there is none
};
/// Commands for `engine` in `form` (reports/launch_command.h). Throws ConfigError if it cannot be launched.
Launch launch_of(const PlanAnswer& answer, const std::string& engine, const std::string& form);
/// Shell commands for the winner's own engine; never throws.
Launch launch_of(const PlanAnswer& answer);

const char* unit_of(LoadKind kind);
/// The winner's bottleneck: the perturbation that helps most.
std::string bound_of(const PlanAnswer& answer);

}  // namespace roofcast::reports
