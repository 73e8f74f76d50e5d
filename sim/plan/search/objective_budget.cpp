#include "sim/plan/search/objective_budget.h"

#include "sim/plan/search/confidence.h"

namespace roofcast {

ObjectiveBudgets::ObjectiveBudgets(const std::vector<Objective>& objectives, double requests, bool certain) {
  for (const Objective& o : objectives) {
    Budget budget{.objective = o, .allowed = requests};
    if (o.percentile >= 0) {
      const double rank = certain ? upper_rank(o.percentile, requests) : o.percentile / 100;
      budget.allowed = requests * (1 - rank) + 1;
    }
    budgets_.push_back(budget);
  }
}

void ObjectiveBudgets::add(const RequestRecord& r) {
  for (Budget& b : budgets_) {
    Seconds value{};
    if (b.objective.metric == LatencyMetric::kTtft) value = r.ttft;
    if (b.objective.metric == LatencyMetric::kTpot) value = r.tpot();
    if (b.objective.metric == LatencyMetric::kE2el) value = r.e2el;
    b.sum += value / b.objective.limit;
    b.over += value > b.objective.limit ? 1 : 0;
  }
}

}  // namespace roofcast
