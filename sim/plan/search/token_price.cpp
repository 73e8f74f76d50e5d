// Dollars, joules and grams of a million tokens of a planned deployment.

#include <algorithm>
#include <cmath>

#include "sim/plan/search/capacity_search.h"

namespace roofcast {
namespace {

/// Share of the steps' time that prompts take, or of the bill that the prefill workers do.
double input_share(const PlannedDeployment& p) {
  const Deployment& d = *p.candidate.scenario.deployment;
  const ServingMetrics& m = p.result.metrics;
  if (m.completed == 0) return 0;
  if (p.candidate.disaggregated()) {
    const double all = p.usd_per_hour();
    return all > 0 ? p.candidate.usd_per_hour({0, p.paid().prefill_replicas}) / all : 0;
  }
  const std::unique_ptr<StepPricer> pricer = make_model_pricer(p.candidate.scenario.deployment);
  const double requests = static_cast<double>(m.completed), prompt = m.input_tokens / requests,
               output = m.output_tokens / requests;
  const int chunk = std::max(1, std::min(d.engine.max_num_batched_tokens, static_cast<int>(std::lround(prompt))));
  const std::vector<PrefillChunk> chunks{{chunk, 0, true}};
  const double prefill = pricer->cost({.decodes = 0, .decode_context = 0, .prefills = chunks}).time.base() / chunk;
  const double flight = requests / m.duration.base() * m.e2el_ms.mean() / 1e3 / p.tested.replicas;  // Little's law
  const int batch =
      std::max(1, std::min(d.seats(), static_cast<int>(std::lround(flight))));
  const double decode =
      pricer->cost({.decodes = batch, .decode_context = batch * (prompt + output / 2), .prefills = {}}).time.base() /
      batch;
  const double in = prefill * std::max(0.0, m.input_tokens - m.cached_tokens), out = decode * m.output_tokens;
  return in + out > 0 ? in / (in + out) : 0;
}

}  // namespace

TokenPrice token_price(const PlannedDeployment& p, const PlanSpec& plan) {
  TokenPrice price;
  const ServingMetrics& m = p.result.metrics;
  if (m.output_tokens <= 0) return price;
  const FleetCost cost = p.cost();
  // What the tokens of the run cost at the fleet's rate.
  const double usd = p.usd_per_hour() * (m.output_tokens / p.output_tokens_per_s()) / 3600.0;
  price.input_share = input_share(p);
  if (m.input_tokens > 0) price.usd_per_million_input = usd * price.input_share / m.input_tokens * 1e6;
  price.usd_per_million_output = usd * (1 - price.input_share) / m.output_tokens * 1e6;
  price.usd_per_million_total = usd / (m.input_tokens + m.output_tokens) * 1e6;
  price.joules_per_output_token = cost.joules_per_output_token;
  constexpr double kJoulesPerKilowattHour = 3.6e6;
  price.grams_co2_per_million_output = cost.joules_per_output_token * 1e6 / kJoulesPerKilowattHour *
                                       plan.grams_co2_per_kwh * plan.power_usage_effectiveness;
  return price;
}

}  // namespace roofcast
