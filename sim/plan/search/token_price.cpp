// Cost, energy and carbon per million tokens of a planned deployment.

#include "sim/plan/search/capacity_search.h"

namespace roofcast {

TokenPrice token_price(const PlannedDeployment& p, const PlanSpec& plan) {
  TokenPrice price;
  const ServingMetrics& m = p.result.metrics;
  if (m.output_tokens <= 0) return price;
  const FleetCost cost = p.cost();
  // What the tokens of the run cost at the fleet's rate.
  const double usd = p.usd_per_hour() * (m.output_tokens / p.output_tokens_per_s()) / 3600.0;
  const bool apart = p.candidate.disaggregated();
  static_cast<TokenBill&>(price) = token_bill(usd, m, p.candidate.scenario,
                                              apart ? p.paid().replicas : p.tested.replicas, p.paid().prefill_replicas);
  price.joules_per_output_token = cost.joules_per_output_token;
  constexpr double kJoulesPerKilowattHour = 3.6e6;
  price.grams_co2_per_million_output = cost.joules_per_output_token * 1e6 / kJoulesPerKilowattHour *
                                       plan.grams_co2_per_kwh * plan.power_usage_effectiveness;
  return price;
}

}  // namespace roofcast
