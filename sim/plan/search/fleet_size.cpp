#include "sim/plan/search/fleet_size.h"

#include <algorithm>
#include <cmath>

#include "sim/plan/search/spares.h"
#include "sim/plan/search/tried_loads.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

PlannedDeployment planned_of(const Candidate& c, const PlanSpec& plan, int replicas, int tested, double load,
                             double held, LoadResult result) {
  return {.candidate = c,
          .replicas = replicas,
          .spare = spares_of(plan, c, replicas),
          .tested = {.replicas = tested},
          .load = load,
          .held = held,
          .result = std::move(result)};
}

constexpr double kMostRate = 1000;  // requests/s of one replica

/// Maximum number of simulated replicas. A larger fleet is represented by this many with their share of the load,
/// because a router over so many replicas has little left to balance. One replica more or fewer is then below the
/// noise, so the search steps by this part of the fleet.
constexpr int kMostSimulated = 128;
int step_of(int replicas) { return std::max(1, replicas / kMostSimulated); }

class Evaluator {
 public:
  Evaluator(const Candidate& c, const PlanSpec& plan, const LoadBounds& bounds, PricerPool& pricers)
      : candidate_(c),
        plan_(plan),
        bounds_(bounds),
        pricers_(pricers),
        load_(offered_load(*c.scenario.workload)),
        most_(most_replicas(plan, c)),
        seed_(c.scenario.serving.seed) {}

  Evaluation run() {
    if (plan_.goal == PlanGoal::kThroughput) {
      throughput();
    } else {
      fleet();
    }
    limit_power();
    return std::move(out_);
  }

 private:
  /// More replicas draw more power, and fewer carry less. Only a search for the highest load can shrink the fleet.
  void limit_power() {
    if (!out_.planned || within_power(*out_.planned, plan_)) return;
    PlannedDeployment& p = *out_.planned;
    while (p.replicas > 1 && p.tested.replicas == 1 && plan_.goal == PlanGoal::kThroughput && !within_power(p, plan_)) {
      p.load *= (p.replicas - 1.0) / p.replicas;
      --p.replicas;
    }
    if (within_power(p, plan_)) return;
    out_.nearest = std::move(p);
    out_.planned.reset();
  }

  bool fleet_holds(int replicas, double held) {
    const LoadKind kind = load_kind(*candidate_.scenario.workload);
    const bool divisible = kind == LoadKind::kRate || kind == LoadKind::kUsers;
    const Fleet tested{.replicas = divisible ? std::min(replicas, kMostSimulated) : replicas};
    const double load = tested.replicas == replicas ? load_ : load_ * tested.replicas / replicas;
    const TriedLoad* known = find_tried(out_.tried, load, tested);
    PlannedDeployment planned = planned_of(
        candidate_, plan_, replicas, tested.replicas, load_, held,
        known != nullptr ? known->result
                         : test_load(candidate_.scenario,
                                     {.load = load, .fleet = tested, .seed = seed_, .more_requests = 1}, pricers_));
    if (known == nullptr) out_.tried.push_back({load, tested, planned.result});
    const bool met = planned.result.met;
    if (met) {
      out_.planned = std::move(planned);
    } else if (!out_.nearest || replicas > out_.nearest->replicas) {
      out_.nearest = std::move(planned);
    }
    return met;
  }

  /// First simulates one replica at its share, which is cheap; then the fleet, one replica more or fewer at a time.
  void fleet() {
    int least = 1;
    if (load_kind(*candidate_.scenario.workload) == LoadKind::kRate) {
      least = std::max(1, static_cast<int>(std::ceil(load_ / bounds_.requests_per_s - 1e-9)));
    }
    if (least > most_) {
      (void)fleet_holds(most_, 0);  // as the nearest answer
      out_.planned.reset();
      return;
    }
    if (load_kind(*candidate_.scenario.workload) == LoadKind::kPace) return fewest_by_doubling();
    double held = 0;
    int replicas = first_guess(least, held);
    if (replicas > most_) replicas = most_;
    const int step = step_of(replicas);
    if (fleet_holds(replicas, held)) {
      while (replicas - step >= least && fleet_holds(replicas - step, held)) replicas -= step;
    } else {
      while (replicas < most_ && !fleet_holds(replicas = std::min(replicas + step, most_), held)) {
      }
    }
  }

  /// 1, 2, 4, ... replicas until they hold the trace, then bisection.
  void fewest_by_doubling() {
    int bad = 0, good = 1;
    while (!fleet_holds(good, 0)) {
      if (good == most_) return;
      bad = good;
      good = std::min(2 * good, most_);
    }
    while (good - bad > 1) {
      const int middle = bad + (good - bad) / 2;
      (fleet_holds(middle, 0) ? good : bad) = middle;
    }
  }

  /// A guess from the load that one replica holds. One replica has slightly harder conditions than a fleet, whose
  /// router balances the load, so the guess may be one too high; the caller checks.
  int first_guess(int least, double& held) {
    const LoadKind kind = load_kind(*candidate_.scenario.workload);
    if (kind == LoadKind::kWhole || least == most_) return least;
    const double high = kind == LoadKind::kUsers ? std::ceil(load_ / least) : load_ / least;
    const double low = kind == LoadKind::kUsers ? std::ceil(load_ / most_) : load_ / most_;
    if (low >= high) return least;
    held = highest_held(low, high);
    return held > 0 ? static_cast<int>(std::ceil(load_ / held - 1e-9)) : most_;
  }

  /// Number of users that a replica runs at the same time.
  double room() const {
    const Deployment& d = *candidate_.scenario.deployment;
    return d.max_sequences();
  }

  /// The highest load that one replica holds. Many more users than fit at once are only tried if fewer hold, because
  /// their run is long.
  double highest_held(double low, double high) {
    const bool users = load_kind(*candidate_.scenario.workload) == LoadKind::kUsers;
    double top = users ? std::min(high, std::max(4 * room(), 2 * low)) : high;
    HeldLoad found = held_load(candidate_.scenario, {.low = low, .high = top}, {}, pricers_, out_.tried);
    while (found.load >= top && top < high) {
      const HeldLoad before = std::move(found);
      top = std::min(8 * top, high);
      found = held_load(candidate_.scenario, {.low = before.load, .high = top, .at_low = &before.result}, {}, pricers_,
                        out_.tried);
    }
    return found.load;
  }

  void throughput() {
    const WorkloadSpec& w = *candidate_.scenario.workload;
    if (load_kind(w) == LoadKind::kWhole) {
      (void)fleet_holds(most_, 0);
      return;
    }
    double high = load_kind(w) == LoadKind::kUsers ? room() : std::min(bounds_.requests_per_s, kMostRate);
    if (load_kind(w) == LoadKind::kPace) {
      const Extent extent = extent_of(w, seed_);
      high *= std::max(extent.last.base(), 1.0) / static_cast<double>(std::max<std::int64_t>(extent.requests, 1));
    }
    HeldLoad held = held_load(candidate_.scenario, {.low = 0, .high = high}, {}, pricers_, out_.tried);
    PlannedDeployment planned =
        planned_of(candidate_, plan_, most_, 1, held.load * most_, held.load, std::move(held.result));
    (held.load > 0 ? out_.planned : out_.nearest) = std::move(planned);
  }

  const Candidate& candidate_;
  const PlanSpec& plan_;
  const LoadBounds& bounds_;
  PricerPool& pricers_;
  double load_;
  int most_;
  std::uint64_t seed_;
  Evaluation out_;
};

}  // namespace

Evaluation evaluate(const Candidate& candidate, const PlanSpec& plan, const LoadBounds& bounds, PricerPool& pricers) {
  return Evaluator(candidate, plan, bounds, pricers).run();
}

namespace {

/// One more worker of a role (one more step of a large fleet); empty when there are no more GPUs.
std::optional<PlannedDeployment> with_one_more(const PlannedDeployment& p, const PlanSpec& plan, bool decode) {
  PlannedDeployment out = p;
  Fleet more = p.fleet();
  const bool part = !p.candidate.disaggregated() && p.tested.replicas < p.replicas;
  (decode ? more.replicas : more.prefill_replicas) += part ? step_of(p.replicas) : 1;
  out.spare = spares_of(plan, p.candidate, more.replicas);
  if (!p.candidate.affords(more, out.spare)) return std::nullopt;
  out.replicas = more.replicas, out.prefill_replicas = more.prefill_replicas;
  if (!part) out.tested = more;
  return out;
}

/// Whether run `a` was closer to its objectives than run `b`.
bool nearer(const LoadResult& a, const LoadResult& b) {
  if (a.met != b.met) return a.met;
  if (a.stationary != b.stationary) return a.stationary;
  return a.worst_ratio < b.worst_ratio;
}

/// Adds one worker; false if there are no more GPUs. A missed TPOT needs a decode worker. A missed TTFT may come from
/// the prompt queue, or from caches that wait for memory to decode: the role that helps more gets the worker.
bool add_worker(PlannedDeployment& p, const PlanSpec& plan, PricerPool& pricers) {
  const auto missed = [&](LatencyMetric metric) {
    return std::any_of(p.result.verdicts.begin(), p.result.verdicts.end(),
                       [&](const Verdict& v) { return v.objective.metric == metric && !v.met; });
  };
  std::optional<PlannedDeployment> best = with_one_more(p, plan, true);
  if (p.candidate.disaggregated() && !missed(LatencyMetric::kTpot) && !missed(LatencyMetric::kItl)) {
    std::optional<PlannedDeployment> other = with_one_more(p, plan, false);
    if (best && other) {
      const Scenario& s = p.candidate.scenario;
      for (PlannedDeployment* each : {&*best, &*other})
        each->result = test_load(s,
                                 {.load = each->tested_load(),
                                  .fleet = each->tested,
                                  .seed = s.serving.seed + 1,
                                  .more_requests = 1,
                                  .to_the_end = true},
                                 pricers);
      if (nearer(other->result, best->result)) best = std::move(other);
    } else if (other) {
      best = std::move(other);
    }
  }
  if (!best) return false;
  p = *std::move(best);
  return true;
}

}  // namespace

bool within_power(const PlannedDeployment& p, const PlanSpec& plan) {
  return plan.max_power.value <= 0 || p.power_bound().value <= plan.max_power.value;
}

bool confirm(PlannedDeployment& p, const PlanSpec& plan, PricerPool& pricers) {
  const Scenario& s = p.candidate.scenario;
  const LoadKind kind = load_kind(*s.workload);
  for (int tries = 0; tries < 8; ++tries) {
    const LoadTest test{.load = p.tested_load(), .fleet = p.tested, .seed = s.serving.seed + 1, .more_requests = 4};
    LoadResult again = test_load(s, test, pricers);
    const bool met = again.met;
    p.result = std::move(again);
    if (met && within_power(p, plan)) return p.confirmed = true;
    if (met && plan.goal != PlanGoal::kThroughput) return false;
    if (plan.goal == PlanGoal::kThroughput) {
      p.load *= 0.96, p.held *= 0.96;
      if (kind == LoadKind::kUsers) p.load = std::floor(p.load), p.held = std::floor(p.held);
      if (p.load < p.replicas && kind == LoadKind::kUsers) return false;
    } else if (!add_worker(p, plan, pricers)) {
      return false;
    }
  }
  return false;
}

}  // namespace roofcast
