#include "sim/plan/search/objective_budget.h"

#include "sim/plan/search/confidence.h"

namespace roofcast {

ObjectiveBudgets::ObjectiveBudgets(const std::vector<Objective>& objectives, double requests, bool certain,
                                   const std::vector<std::int64_t>& by_client) {
  for (const Objective& o : objectives) {
    const double limited =
        o.client >= 0 ? static_cast<double>(by_client.at(static_cast<std::size_t>(o.client))) : requests;
    Budget budget{.objective = o, .allowed = limited};
    if (o.percentile >= 0) {
      const double rank = certain ? upper_rank(o.percentile, std::max(limited, 1.0)) : o.percentile / 100;
      budget.allowed = limited * (1 - rank) + 1;
    }
    budgets_.push_back(budget);
  }
}

void ObjectiveBudgets::add(const RequestRecord& r) {
  for (Budget& b : budgets_) {
    if (b.objective.client >= 0 && b.objective.client != r.client) continue;
    Seconds value{};
    if (b.objective.metric == LatencyMetric::kTtft) value = r.ttft;
    if (b.objective.metric == LatencyMetric::kTpot) value = r.tpot();
    if (b.objective.metric == LatencyMetric::kE2el) value = r.e2el;
    b.sum += value / b.objective.limit;
    b.over += value > b.objective.limit ? 1 : 0;
  }
}

}  // namespace roofcast
