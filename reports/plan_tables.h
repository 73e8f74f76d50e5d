#pragma once
// The tables of a plan, and how they name a fleet.

#include "reports/verdict.h"
#include "sim/plan/search/plan_answer.h"

namespace roofcast::reports {

/// Rows of the ranking that are shown.
inline constexpr std::size_t kRowsShown = 12;

/// The best rows. Columns that differ between rows come before those that do not; the goal of the plan (tokens/s per
/// GPU, the cost of a job) is never left out.
VerdictTable ranking_table(const PlanAnswer& answer);
/// Simulated loads that no other beats.
VerdictTable frontier_table(const PlanResult& result);

/// "tp 2 pp 2"; prefill > decode if disaggregated.
std::string layout_of(const Candidate& candidate);
/// "4 x tp 2", "3 x tp 2 > 1+1 x tp 4".
std::string fleet_layout(const PlannedDeployment& planned);
/// GPUs paid for: more than the replicas use if instances are rented whole.
double paid_gpus_of(const PlannedDeployment& planned);
const Candidate& candidate_of(const PlanResult& result, std::uint64_t index);

}  // namespace roofcast::reports
