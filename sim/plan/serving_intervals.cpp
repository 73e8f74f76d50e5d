#include "sim/plan/serving_intervals.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error_summary.h"
#include "sim/plan/acceptance.h"
#include "sim/plan/intervals.h"
#include "sim/plan/metrics_list.h"
#include "sim/plan/planned_spread.h"
#include "sim/plan/shared_pricer.h"
#include "sim/plan/truth.h"

namespace roofcast {
namespace {

/// Prices of the deployments' steps, which all draws shift.
using Pricers = std::map<const Deployment*, std::unique_ptr<StepPricer>>;

MetricsList simulate_shifted(const Scenario& scenario, const std::map<const Deployment*, StepSpreads>& spreads,
                             Pricers& pricers, const std::vector<double>& draw) {
  ServingOptions options = scenario.serving;
  options.pricer = [&](std::shared_ptr<const Deployment> d) -> std::unique_ptr<StepPricer> {
    const auto known = spreads.find(d.get());
    StepFactors factors;
    if (known != spreads.end())
      factors = {kernel_factor(known->second.decode, draw), kernel_factor(known->second.prefill, draw)};
    std::unique_ptr<StepPricer>& pricer = pricers[d.get()];
    if (!pricer) pricer = make_model_pricer(d);
    return shifted_pricer(std::make_unique<SharedPricer>(*pricer), factors);
  };
  return metrics_of(simulate(scenario.deployment, *scenario.workload, options), scenario);
}

/// What the whole deployment may be off by, of a metric: throughput falls as TPOT rises.
LogSpread spread_of(const std::string& metric, SystemSpread system, const SpeculationSpec& drafts) {
  const bool counts_steps =
      metric.find("itl") != std::string::npos;  // gaps between steps, however many tokens each gives
  if (!counts_steps) system.tpot = together(system.tpot, acceptance_spread(drafts));
  if (metric.ends_with("_throughput")) return {-system.tpot.high, -system.tpot.low};
  return metric.find("ttft") != std::string::npos ? system.ttft : system.tpot;
}

bool has_interval(const std::string& metric) { return metric.ends_with("_ms") || metric.ends_with("_throughput"); }

}  // namespace

LogSpread quick_spread(const Scenario& scenario, const ServingMetrics& metrics, const std::string& metric) {
  const auto& d = scenario.deployment;
  if (d->fidelity == Fidelity::kIdeal || metrics.completed == 0) return {};
  const bool first = metric.find("ttft") != std::string::npos;
  const auto& apart = scenario.serving.disaggregation;
  const StepSpreads steps = step_spreads(first && apart ? apart->prefill : d, metrics, scenario.serving.replicas);
  double variance = 0;
  for (const double spread : first ? steps.prefill : steps.decode) variance += spread * spread;
  return together(kernel_spread(std::sqrt(variance)),
                  spread_of(metric, planned_spread(*d, regime_of(scenario, metrics)), scenario.serving.speculation));
}

std::vector<MetricInterval> serving_intervals(const Scenario& scenario, const ServingMetrics& metrics) {
  if (scenario.deployment->fidelity == Fidelity::kIdeal || metrics.completed == 0) return {};
  constexpr std::int64_t kRequests = 4'000'000;  // of all draws together
  const auto count = static_cast<std::size_t>(std::min<std::int64_t>(kRequests / metrics.completed, 40));
  if (count < 8) return {};
  std::map<const Deployment*, StepSpreads> spreads;
  const auto add = [&](const std::shared_ptr<const Deployment>& d, int replicas) {
    spreads[d.get()] = step_spreads(d, metrics, replicas);
  };
  add(scenario.deployment, scenario.serving.replicas);
  if (const auto& apart = scenario.serving.disaggregation) add(apart->prefill, apart->prefill_replicas);
  const std::vector<std::vector<double>> draws =
      stratified_normals(count, kOperatorFamilies + 1, scenario.serving.seed);
  std::vector<MetricsList> results(count);
  Pricers pricers;
  for (std::size_t i = 0; i < count; ++i) results[i] = simulate_shifted(scenario, spreads, pricers, draws[i]);
  std::map<std::string, std::vector<double>> values;
  for (const MetricsList& result : results) {
    for (const auto& [metric, value] : result) {
      if (has_interval(metric)) values[metric].push_back(std::get<double>(value));
    }
  }
  const SystemSpread system = system_spread(*scenario.deployment, regime_of(scenario, metrics));
  std::vector<MetricInterval> out;
  for (const auto& [metric, value] : metrics_of(metrics, scenario)) {
    if (!has_interval(metric) || std::get<double>(value) == 0) continue;  // 0: no sample, as TPOT of single tokens
    // The prediction itself is always within: a decision of the scheduler may turn with the slightest shift.
    const double predicted = std::get<double>(value);
    const LogSpread kernels{std::min(0.0, std::log(quantile(values[metric], 0.05) / predicted)),
                            std::max(0.0, std::log(quantile(values[metric], 0.95) / predicted))};
    const LogSpread all = together(kernels, spread_of(metric, system, scenario.serving.speculation));
    out.push_back({metric, predicted * std::exp(all.low), predicted * std::exp(all.high)});
  }
  return out;
}

}  // namespace roofcast
