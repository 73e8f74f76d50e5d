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
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

/// Step prices of the deployments, which all draws scale.
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

/// The error of the whole deployment for a metric: throughput falls as TPOT rises.
LogSpread spread_of(const std::string& metric, SystemSpread system, const SpeculationSpec& drafts) {
  const bool counts_steps =
      metric.find("itl") != std::string::npos;  // gaps between steps, however many tokens each gives
  if (!counts_steps) system.tpot = together(system.tpot, acceptance_spread(drafts));
  if (metric.ends_with("_throughput")) return {-system.tpot.high, -system.tpot.low};
  return metric.find("ttft") != std::string::npos ? system.ttft : system.tpot;
}

/// Whether arrivals do not depend on earlier requests.
bool is_open(const WorkloadSpec& w) {
  using Process = ArrivalSpec::Process;
  return w.arrivals.process != Process::kClosedLoop && w.arrivals.process != Process::kAllAtOnce;
}

/// The spread of the arrival rate of this many requests, because gaps are random.
LogSpread arrivals_spread(const WorkloadSpec& w, double requests) {
  using Process = ArrivalSpec::Process;
  const Process process = w.arrivals.process;
  const double cv = process == Process::kPoisson ? 1.0 : process == Process::kGamma ? w.arrivals.cv : 0.0;
  const double half = kNinetyPercent * cv / std::sqrt(std::max(1.0, requests));
  return {-half, half};
}

/// Whether users do not pause, so that the number in flight is constant.
bool in_closed_loop(const WorkloadSpec& w) {
  return w.arrivals.process == ArrivalSpec::Process::kClosedLoop && w.arrivals.between_requests() <= Seconds(0);
}

/// The metrics if every step takes exp(`slower`) times as long.
MetricsList metrics_at(const Scenario& scenario, Pricers& pricers, double slower) {
  ServingOptions options = scenario.serving;
  options.pricer = [&](std::shared_ptr<const Deployment> d) -> std::unique_ptr<StepPricer> {
    std::unique_ptr<StepPricer>& pricer = pricers[d.get()];
    if (!pricer) pricer = make_model_pricer(d);
    return shifted_pricer(std::make_unique<SharedPricer>(*pricer), {std::exp(slower), std::exp(slower)});
  };
  return metrics_of(simulate(scenario.deployment, *scenario.workload, options), scenario);
}

double number_of(const MetricsList& list, const std::string& metric, double default_value) {
  const auto at = std::find_if(list.begin(), list.end(), [&](const auto& m) { return m.first == metric; });
  return at != list.end() ? std::get<double>(at->second) : default_value;
}

bool has_interval(const std::string& metric) { return metric.ends_with("_ms") || metric.ends_with("_throughput"); }

}  // namespace

LogSpread quick_spread(const Scenario& scenario, const ServingMetrics& metrics, const std::string& metric) {
  const auto& d = scenario.deployment;
  if (d->fidelity == Fidelity::kIdeal || metrics.completed == 0) return {};
  const bool first = metric.find("ttft") != std::string::npos;
  const auto& apart = scenario.serving.disaggregation;
  std::map<const Deployment*, StepSpreads> spreads = step_spreads(scenario, metrics, scenario.serving.replicas);
  const StepSpreads& steps = spreads[first && apart ? apart->prefill.get() : d.get()];
  double variance = 0;
  for (const double spread : first ? steps.prefill : steps.decode) variance += spread * spread;
  return together(kernel_spread(std::sqrt(variance)),
                  spread_of(metric, planned_spread(*d, regime_of(scenario, metrics), spreads[d.get()].host),
                            scenario.serving.speculation));
}

std::vector<MetricInterval> serving_intervals(const Scenario& scenario, const ServingMetrics& metrics) {
  if (scenario.deployment->fidelity == Fidelity::kIdeal || metrics.completed == 0) return {};
  constexpr std::int64_t kRequests = 4'000'000;  // of all draws together
  const auto count = static_cast<std::size_t>(std::min<std::int64_t>(kRequests / metrics.completed, 40));
  if (count < 8) return {};
  std::map<const Deployment*, StepSpreads> spreads = step_spreads(scenario, metrics, scenario.serving.replicas);
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
  const SystemSpread system =
      system_spread(*scenario.deployment, regime_of(scenario, metrics), spreads[scenario.deployment.get()].host);
  const MetricsList list = metrics_of(metrics, scenario);
  const auto spread = [&](const std::string& metric, double predicted) {
    // The interval always contains the prediction: tiny shifts may change decisions of the scheduler.
    const LogSpread kernels{std::min(0.0, std::log(quantile(values[metric], 0.05) / predicted)),
                            std::max(0.0, std::log(quantile(values[metric], 0.95) / predicted))};
    return together(kernels, spread_of(metric, system, scenario.serving.speculation));
  };
  const bool open = is_open(*scenario.workload);
  const double mean_stay = metrics.e2el_ms.mean();
  const LogSpread stay = mean_stay > 0 ? spread("mean_e2el_ms", mean_stay) : LogSpread{};
  MetricsList slow, fast;
  if (open) {
    // Spreads of steps, not of latencies, which include the queueing due to slower steps.
    std::vector<double> steps;
    for (const std::vector<double>& draw : draws)
      steps.push_back(std::log(kernel_factor(spreads[scenario.deployment.get()].decode, draw)));
    const LogSpread kernels{std::min(0.0, quantile(steps, 0.05)), std::max(0.0, quantile(steps, 0.95))};
    const LogSpread all = together(kernels, spread_of("mean_tpot_ms", system, scenario.serving.speculation));
    slow = metrics_at(scenario, pricers, all.high);
    fast = metrics_at(scenario, pricers, all.low);
  }
  std::vector<MetricInterval> out;
  for (const auto& [metric, value] : list) {
    if (!has_interval(metric) || std::get<double>(value) == 0) continue;  // 0: no sample, as TPOT of single tokens
    const double predicted = std::get<double>(value);
    if (metric.ends_with("_throughput") && open) {
      const LogSpread served{std::min(0.0, std::log(number_of(slow, metric, predicted) / predicted)),
                             std::max(0.0, std::log(number_of(fast, metric, predicted) / predicted))};
      const LogSpread all =
          together(served, arrivals_spread(*scenario.workload, static_cast<double>(metrics.completed)));
      out.push_back({metric, predicted * std::exp(all.low), predicted * std::exp(all.high)});
      continue;
    }
    // The number of users is constant: by Little's law throughput is inverse to their stay.
    const bool users = metric.ends_with("_throughput") && in_closed_loop(*scenario.workload);
    const LogSpread all = users ? LogSpread{-stay.high, -stay.low} : spread(metric, predicted);
    out.push_back({metric, predicted * std::exp(all.low), predicted * std::exp(all.high)});
  }
  return out;
}

}  // namespace roofcast
