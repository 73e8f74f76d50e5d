#include "sim/plan/truth.h"

#include <algorithm>
#include <cmath>

#include "base/error_summary.h"
#include "base/normal.h"
#include "base/random.h"
#include "sim/plan/acceptance.h"
#include "sim/plan/planned_spread.h"
#include "sim/plan/speculation.h"
#include "sim/step/deployment.h"
#include "sim/step/step_model.h"
#include "sim/step/streaming.h"

namespace roofcast {
namespace {

constexpr std::size_t kKernels = kOperatorFamilies + 1;
/// Fraction of TTFT above which it counts as queueing.
constexpr double kMostlyQueue = 0.5;
enum Dimension : std::size_t { kSystem = kKernels, kFirstToken, kAcceptance, kLoad, kDimensions };

class ShiftedPricer final : public StepPricer {
 public:
  ShiftedPricer(std::unique_ptr<StepPricer> pricer, StepFactors factors)
      : pricer_(std::move(pricer)), factors_(factors) {}

  StepCost cost(const StepBatch& batch) override {
    StepCost cost = pricer_->cost(batch);
    Seconds decodes{};
    if (batch.decodes > 0) {
      StepBatch alone = batch;
      alone.prefills = {};
      alone.ranks = {};
      decodes = batch.prefills.empty() ? cost.time : std::min(cost.time, pricer_->cost(alone).time);
    }
    cost.time = decodes * factors_.decode + (cost.time - decodes) * factors_.prefill;
    return cost;
  }
  StepCost decode_run(const StepBatch& first, std::int64_t steps) override {
    StepCost cost = pricer_->decode_run(first, steps);
    cost.time *= factors_.decode;
    return cost;
  }
  Seconds run_time(const StepBatch& first, std::int64_t steps) override {
    return pricer_->run_time(first, steps) * factors_.decode;
  }
  std::int64_t steps_within(const StepBatch& first, Seconds budget, std::int64_t limit) override {
    return pricer_->steps_within(first, budget / factors_.decode, limit);
  }

 private:
  std::unique_ptr<StepPricer> pricer_;
  StepFactors factors_;
};

/// ln of the factor at a standard normal value; each side has its own width.
double at(const LogSpread& spread, double normal) {
  return normal < 0 ? -spread.low / kNinetyPercent * normal : spread.high / kNinetyPercent * normal;
}

/// The narrower of two on either side: the host may take more of a decode step than of a first token.
LogSpread narrower(const LogSpread& one, const LogSpread& other) {
  return {std::max(one.low, other.low), std::min(one.high, other.high)};
}

/// The part of one spread beyond another.
LogSpread beyond(const LogSpread& whole, const LogSpread& part) {
  const auto rest = [](double a, double b) { return std::sqrt(std::max(0.0, a * a - b * b)); };
  return {-rest(whole.low, part.low), rest(whole.high, part.high)};
}

}  // namespace

std::vector<std::vector<double>> stratified_normals(std::size_t count, std::size_t dimensions, std::uint64_t seed) {
  std::vector<std::vector<double>> draws(count, std::vector<double>(dimensions));
  Random random(seed);
  for (std::size_t dimension = 0; dimension < dimensions; ++dimension) {
    std::vector<std::size_t> slices(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto other = static_cast<std::size_t>(random.uniform_integer(0, static_cast<std::int64_t>(i)));
      slices[i] = slices[other];
      slices[other] = i;
    }
    for (std::size_t i = 0; i < count; ++i)
      draws[i][dimension] = normal_quantile((static_cast<double>(slices[i]) + 0.5) / static_cast<double>(count));
  }
  return draws;
}

std::unique_ptr<StepPricer> shifted_pricer(std::unique_ptr<StepPricer> pricer, StepFactors factors) {
  return std::make_unique<ShiftedPricer>(std::move(pricer), factors);
}

StepSpreads step_spreads(const std::shared_ptr<const Deployment>& d, const SpeculationSpec& drafts,
                         const ServingMetrics& m, int replicas, bool prefill_only) {
  StepModel model(d);
  const double prompt = std::max(1.0, m.input_tokens / std::max<double>(1.0, static_cast<double>(m.completed)));
  const double output = m.output_tokens / std::max<double>(1.0, static_cast<double>(m.completed));
  const double together = m.output_tokens / std::max(1e-9, m.duration.base()) * m.tpot_ms.mean() / 1e3;  // Little's law
  const int decodes = std::max(1, static_cast<int>(std::lround(together / std::max(1, replicas))));
  const double held = decodes * (prompt + output / 2);
  StepBreakdown decode =
      model.breakdown({.decodes = decodes, .decode_context = held, .query_len = drafts.query_len(), .prefills = {}});
  if (drafts.active()) {
    DraftRound round;
    if (drafts.draft) {
      StepModel drafter(drafts.draft);
      round = draft_round(drafter, drafts, {.decodes = decodes, .decode_context = held, .prefills = {}});
    }
    add_drafts(decode, drafts, round);
  }
  const std::array<PrefillChunk, 1> chunk{{{.tokens = static_cast<int>(std::lround(prompt)), .context_before = 0}}};
  const StepBreakdown prefill = model.breakdown({.prefills = chunk});
  const Seconds front_end =
      d->fidelity == Fidelity::kIdeal ? Seconds(0) : intake_time(d->engine, prompt) + d->engine.host.request_latency;
  return {family_spreads(decode, *d, decode.time), family_spreads(prefill, *d, prefill.time),
          host_spreads(decode, prefill, prefill_only || output <= 1 ? prefill : decode, front_end,
                       m.ttft_ms.mean() * kMillisecond)};
}

std::map<const Deployment*, StepSpreads> step_spreads(const Scenario& scenario, const ServingMetrics& metrics,
                                                      int replicas) {
  const auto& d = scenario.deployment;
  std::map<const Deployment*, StepSpreads> spreads;
  spreads[d.get()] = step_spreads(d, scenario.serving.speculation, metrics, replicas);
  if (const auto& apart = scenario.serving.disaggregation) {
    const StepSpreads& prefill = spreads[apart->prefill.get()] =
        step_spreads(apart->prefill, {}, metrics, apart->prefill_replicas, true);
    spreads[d.get()].host.first = prefill.host.first;
  }
  return spreads;
}

double kernel_factor(const FamilySpreads& spreads, const std::vector<double>& draw) {
  double exponent = 0;
  for (std::size_t i = 0; i < spreads.size(); ++i) exponent += spreads[i] * draw[i];
  return std::exp(exponent);
}

LoadRegime regime_of(const Scenario& scenario, const ServingMetrics& m) {
  const double completed = std::max<double>(1.0, static_cast<double>(m.completed));
  const double in_flight = completed * m.e2el_ms.mean() / 1e3 / std::max(1e-9, m.duration.base());
  const ArrivalSpec& arrivals = scenario.workload->arrivals;
  const bool closed = arrivals.process == ArrivalSpec::Process::kClosedLoop;
  const double tokens = (m.input_tokens + m.output_tokens) / completed;
  const LoadRegime regime =
      load_regime(*scenario.deployment, scenario.serving.replicas, closed ? arrivals.concurrency : in_flight, tokens);
  const bool queue = m.queue_ms.mean() > kMostlyQueue * m.ttft_ms.mean();
  return regime == LoadRegime::kSaturated && queue ? LoadRegime::kQueued : regime;
}

std::vector<TruthDraw> truth_draws(std::size_t count, std::uint64_t seed) {
  std::vector<TruthDraw> draws;
  for (std::vector<double>& normals : stratified_normals(count, kDimensions, seed))
    draws.push_back({std::move(normals)});
  return draws;
}

SystemFactors fastest_factors(const SystemSpread& a, const SystemSpread& b, const TruthDraw& draw) {
  const double system = draw.normals[kSystem], first = draw.normals[kFirstToken];
  const double step = std::min(at(a.tpot, system), at(b.tpot, system));
  const double prefill = std::min({step, at(a.ttft, system), at(b.ttft, system)});
  // What TTFT adds to its steps is never wider than TTFT.
  const double more = std::min({0.0, at(a.ttft, first), at(b.ttft, first)});
  return {std::exp(prefill + more), std::exp(step)};
}

Truths::Truths(const Scenario& scenario, const ServingMetrics& nominal, int replicas, double load_uncertainty)
    : scenario_(scenario), load_uncertainty_(load_uncertainty) {
  const Deployment& d = *scenario.deployment;
  if (d.fidelity == Fidelity::kIdeal || nominal.completed == 0) return;
  spreads_ = step_spreads(scenario, nominal, replicas);
  Scenario fleet = scenario;
  fleet.serving.replicas = replicas;
  const LoadRegime regime = regime_of(fleet, nominal);
  // A queue that grows in some draw does so in the simulation; it is not drawn again.
  const bool waits = regime == LoadRegime::kSaturated || regime == LoadRegime::kQueued;
  const SystemSpread system = planned_spread(d, waits ? LoadRegime::kLoaded : regime, spreads_[&d].host);
  decode_ = system.tpot;
  prefill_ = narrower(system.ttft, system.tpot);
  first_token_ = beyond(system.ttft, prefill_);
}

Scenario Truths::scenario_in(const TruthDraw& draw) const {
  Scenario s = scenario_;
  const double slower = std::exp(at(first_token_, draw.normals[kFirstToken]));
  std::vector<Objective> objectives = s.objectives;
  for (Objective& o : objectives) {
    if (o.metric == LatencyMetric::kTtft) o.limit = o.limit / slower;
  }
  s.set_objectives(std::move(objectives));
  s.serving.speculation = accepted_better(std::move(s.serving.speculation), draw.normals[kAcceptance]);
  return s;
}

double Truths::load_factor(const TruthDraw& draw) const { return std::exp(load_uncertainty_ * draw.normals[kLoad]); }

StepFactors Truths::factors(const Deployment& d, const TruthDraw& draw) const {
  const auto known = spreads_.find(&d);
  if (known == spreads_.end()) return {};
  const double system = draw.normals[kSystem];
  return {std::exp(at(decode_, system)) * kernel_factor(known->second.decode, draw.normals),
          std::exp(at(prefill_, system)) * kernel_factor(known->second.prefill, draw.normals)};
}

PricerFactory Truths::pricers_in(const TruthDraw& draw, PricerFactory nominal) const {
  return [this, draw, nominal](std::shared_ptr<const Deployment> d) {
    const StepFactors moved = factors(*d, draw);
    return shifted_pricer(nominal(std::move(d)), moved);
  };
}

double Truths::harm(const TruthDraw& draw, const ServingMetrics& nominal) const {
  constexpr double kBatching = 1.5;  // a slower machine has larger batches
  const StepFactors steps = factors(*scenario_.deployment, draw);
  const StepFactors prompts =
      scenario_.serving.disaggregation ? factors(*scenario_.serving.disaggregation->prefill, draw) : steps;
  const double load = std::log(load_factor(draw)), decode = std::log(steps.decode), prefill = std::log(prompts.prefill);
  // Where it waits, a first token also waits for decode steps, and twice as much for the load.
  const double ttft = nominal.ttft_ms.mean();
  const double queued = ttft > 0 ? std::clamp(nominal.queue_ms.mean() / ttft, 0.0, 1.0) : 0.0;
  double worst = scenario_.objectives.empty() ? decode + (prefill + decode) / 2 + load : -1e300;
  for (const Objective& o : scenario_.objectives) {
    const double nominally = std::log(std::max(1e-9, observed(o, nominal) / o.limit));
    const bool first = o.metric == LatencyMetric::kTtft;
    const double later = first ? prefill + queued * (decode + 2 * load) + at(first_token_, draw.normals[kFirstToken])
                               : kBatching * (decode + load);
    worst = std::max(worst, nominally + later);
  }
  if (scenario_.serving.speculation.active()) worst -= acceptance_deviation() * draw.normals[kAcceptance];
  return worst;
}

}  // namespace roofcast
