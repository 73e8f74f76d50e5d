#include "sim/plan/serving_intervals.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/error_summary.h"
#include "base/normal.h"
#include "base/random.h"
#include "sim/plan/intervals.h"
#include "sim/plan/metrics_list.h"
#include "sim/plan/shared_pricer.h"
#include "sim/step/step_model.h"

namespace roofcast {
namespace {

/// A standard normal value for each family of operators, and one for what is no operator.
using Draw = std::array<double, kOperatorFamilies + 1>;

/// How far one draw moves the times of a deployment's steps.
struct Factors {
  double decode = 1, prefill = 1;
};

double factor_of(const FamilySpreads& spreads, const Draw& draw) {
  double exponent = 0;
  for (std::size_t i = 0; i < draw.size(); ++i) exponent += spreads[i] * draw[i];
  return std::exp(exponent);
}

/// A mixed step is its decodes, and what the prompts add to them.
class ShiftedPricer final : public StepPricer {
 public:
  ShiftedPricer(std::unique_ptr<StepPricer> pricer, Factors factors) : pricer_(std::move(pricer)), factors_(factors) {}

  StepCost cost(const StepBatch& batch) override {
    StepCost cost = pricer_->cost(batch);
    Seconds decodes{};
    if (batch.decodes > 0) {
      StepBatch alone = batch;
      alone.prefills = {};
      alone.rank_prefill_tokens = 0;
      decodes = batch.prefills.empty() ? cost.time : std::min(cost.time, pricer_->cost(alone).time);
    }
    cost.time = decodes * factors_.decode + (cost.time - decodes) * factors_.prefill;
    return cost;
  }
  StepCost decode_run(int decodes, double context, int query_len, std::int64_t steps) override {
    StepCost cost = pricer_->decode_run(decodes, context, query_len, steps);
    cost.time *= factors_.decode;
    return cost;
  }
  std::int64_t steps_within(int decodes, double context, int query_len, Seconds budget, std::int64_t limit) override {
    return pricer_->steps_within(decodes, context, query_len, budget / factors_.decode, limit);
  }

 private:
  std::unique_ptr<StepPricer> pricer_;
  Factors factors_;
};

/// What the families weigh in the two kinds of steps of one deployment.
struct StepSpreads {
  FamilySpreads decode{}, prefill{};
};

StepSpreads spreads_of(const std::shared_ptr<const Deployment>& d, const ServingMetrics& m, int replicas) {
  StepModel model(d);
  const double prompt = std::max(1.0, m.input_tokens / std::max<double>(1.0, static_cast<double>(m.completed)));
  const double output = m.output_tokens / std::max<double>(1.0, static_cast<double>(m.completed));
  const double together = m.output_tokens / std::max(1e-9, m.duration.base()) * m.tpot_ms.mean() / 1e3;  // Little's law
  const int decodes = std::max(1, static_cast<int>(std::lround(together / std::max(1, replicas))));
  const StepBreakdown decode =
      model.breakdown({.decodes = decodes, .decode_context = decodes * (prompt + output / 2), .prefills = {}});
  const std::array<PrefillChunk, 1> chunk{{{.tokens = static_cast<int>(std::lround(prompt)), .context_before = 0}}};
  const StepBreakdown prefill = model.breakdown({.prefills = chunk});
  return {family_spreads(decode, *d, decode.time), family_spreads(prefill, *d, prefill.time)};
}

/// Latin hypercube: of every family each of `count` equally likely slices once.
std::vector<Draw> stratified_draws(std::size_t count, std::uint64_t seed) {
  std::vector<Draw> draws(count);
  Random random(seed);
  for (std::size_t family = 0; family < Draw{}.size(); ++family) {
    std::vector<std::size_t> slices(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto other = static_cast<std::size_t>(random.uniform_integer(0, static_cast<std::int64_t>(i)));
      slices[i] = slices[other];
      slices[other] = i;
    }
    for (std::size_t i = 0; i < count; ++i)
      draws[i][family] = normal_quantile((static_cast<double>(slices[i]) + 0.5) / static_cast<double>(count));
  }
  return draws;
}

/// Prices of the deployments' steps, which all draws shift.
using Pricers = std::map<const Deployment*, std::unique_ptr<StepPricer>>;

MetricsList simulate_shifted(const Scenario& scenario, const std::map<const Deployment*, StepSpreads>& spreads,
                             Pricers& pricers, const Draw& draw) {
  ServingOptions options = scenario.serving;
  options.pricer = [&](std::shared_ptr<const Deployment> d) -> std::unique_ptr<StepPricer> {
    const auto known = spreads.find(d.get());
    Factors factors;
    if (known != spreads.end())
      factors = {factor_of(known->second.decode, draw), factor_of(known->second.prefill, draw)};
    std::unique_ptr<StepPricer>& pricer = pricers[d.get()];
    if (!pricer) pricer = make_model_pricer(d);
    return std::make_unique<ShiftedPricer>(std::make_unique<SharedPricer>(*pricer), factors);
  };
  return metrics_of(simulate(scenario.deployment, *scenario.workload, options), scenario);
}

/// What the whole deployment may be off by, of a metric: throughput falls as TPOT rises.
LogSpread spread_of(const std::string& metric, const SystemSpread& system) {
  if (metric.ends_with("_throughput")) return {-system.tpot.high, -system.tpot.low};
  return metric.find("ttft") != std::string::npos ? system.ttft : system.tpot;
}

/// Requests in flight on average, by Little's law.
LoadRegime regime_of(const Scenario& scenario, const ServingMetrics& m) {
  const double completed = std::max<double>(1.0, static_cast<double>(m.completed));
  const double in_flight = completed * m.e2el_ms.mean() / 1e3 / std::max(1e-9, m.duration.base());
  const ArrivalSpec& arrivals = scenario.workload->arrivals;
  const bool closed = arrivals.process == ArrivalSpec::Process::kClosedLoop;
  const double tokens = (m.input_tokens + m.output_tokens) / completed;
  return load_regime(*scenario.deployment, scenario.serving.replicas, closed ? arrivals.concurrency : in_flight,
                     tokens);
}

bool has_interval(const std::string& metric) { return metric.ends_with("_ms") || metric.ends_with("_throughput"); }

}  // namespace

LogSpread quick_spread(const Scenario& scenario, const ServingMetrics& metrics, const std::string& metric) {
  const auto& d = scenario.deployment;
  if (d->fidelity == Fidelity::kIdeal || metrics.completed == 0) return {};
  const bool first = metric.find("ttft") != std::string::npos;
  const auto& apart = scenario.serving.disaggregation;
  const StepSpreads steps = spreads_of(first && apart ? apart->prefill : d, metrics, scenario.serving.replicas);
  double variance = 0;
  for (const double spread : first ? steps.prefill : steps.decode) variance += spread * spread;
  return together(kernel_spread(std::sqrt(variance)),
                  spread_of(metric, system_spread(*d, regime_of(scenario, metrics))));
}

std::vector<MetricInterval> serving_intervals(const Scenario& scenario, const ServingMetrics& metrics) {
  if (scenario.deployment->fidelity == Fidelity::kIdeal || metrics.completed == 0) return {};
  constexpr std::int64_t kRequests = 4'000'000;  // of all draws together
  const auto count = static_cast<std::size_t>(std::min<std::int64_t>(kRequests / metrics.completed, 40));
  if (count < 8) return {};
  std::map<const Deployment*, StepSpreads> spreads;
  const auto add = [&](const std::shared_ptr<const Deployment>& d, int replicas) {
    spreads[d.get()] = spreads_of(d, metrics, replicas);
  };
  add(scenario.deployment, scenario.serving.replicas);
  if (const auto& apart = scenario.serving.disaggregation) add(apart->prefill, apart->prefill_replicas);
  const std::vector<Draw> draws = stratified_draws(count, scenario.serving.seed);
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
    const LogSpread all = together(kernels, spread_of(metric, system));
    out.push_back({metric, predicted * std::exp(all.low), predicted * std::exp(all.high)});
  }
  return out;
}

}  // namespace roofcast
