#include "sim/plan/search/pair_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/plan/search/waiting.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kBetter = 1.005;  // factor by which a load must beat the best so far

constexpr int kEachUpTo = 40;

/// Numbers from `least` on: the plan's own, or each up to 40 and then in increments of 5 %.
std::vector<int> counts_from(int least, int most, const RoleSpace& role) {
  std::vector<int> out;
  if (!role.workers.empty()) {
    std::copy_if(role.workers.begin(), role.workers.end(), std::back_inserter(out),
                 [&](int n) { return n >= std::max(1, least) && n <= most; });
    return out;
  }
  for (int n = std::max(1, least); n <= most; n += std::max(1, n / 20)) out.push_back(n);
  return out;
}
bool among_counts(int n, const RoleSpace& role) { return role.workers.empty() ? n <= kEachUpTo : role.allows_count(n); }

bool fixed_score(const PlanSpec& plan, LoadKind kind) {
  return plan.goal != PlanGoal::kThroughput && !(plan.goal == PlanGoal::kCost && kind == LoadKind::kWhole);
}

/// Whether the load is searched: a batch job is fixed, and a trace is planned at its own pace.
bool turns_up(LoadKind kind) { return kind == LoadKind::kRate || kind == LoadKind::kUsers; }

Fleet with_spares(const Fleet& fleet, const PlanSpec& plan) {
  return {fleet.replicas + plan.spare_replicas, fleet.prefill_replicas + plan.spare_replicas};
}

/// X + (o - 1) T + the pause, for limits X on TTFT and T on TPOT; infinite without one of them.
double longest_stay(const Scenario& s) {
  double ttft = kInfinity, tpot = kInfinity;
  for (const Objective& o : s.objectives) {
    if (o.metric == LatencyMetric::kTtft) ttft = std::min(ttft, o.limit.base());
    if (o.metric == LatencyMetric::kTpot) tpot = std::min(tpot, o.limit.base());
  }
  return ttft + (s.workload->output_tokens.mean() - 1) * tpot + s.workload->arrivals.between_requests().base();
}

/// Minimum requests/s of the load. For users, by Little's law: a mean TTFT of at most X and a mean TPOT of at most T
/// limit the mean stay to longest_stay().
double least_rate(const Scenario& s) {
  const WorkloadSpec& w = *s.workload;
  const LoadKind kind = load_kind(w);
  if (kind == LoadKind::kRate) return offered_load(w);
  if (kind != LoadKind::kUsers || !w.output_tokens.constant()) return 0;
  const auto mean = [](const Objective& o) { return o.percentile < 0; };
  if (!std::all_of(s.objectives.begin(), s.objectives.end(), mean)) return 0;
  const double stay = longest_stay(s);
  return std::isfinite(stay) && stay > 0 ? 0.9 * offered_load(w) / stay : 0;  // the run's ends are emptier
}

/// Score of a fleet that serves this many requests/s.
double score_at(const Candidate& pair, const PlanSpec& plan, const Fleet& fleet, double requests_per_s) {
  const WorkloadSpec& w = *pair.scenario.workload;
  const Fleet paid = with_spares(fleet, plan);
  if (plan.goal == PlanGoal::kThroughput) return -requests_per_s * w.output_tokens.mean() / pair.gpus(paid);
  if (plan.goal == PlanGoal::kGpus) return pair.gpus(paid);
  if (load_kind(w) == LoadKind::kWhole)
    return pair.usd_per_hour(paid) / 3600.0 * static_cast<double>(w.requests) / requests_per_s;
  return pair.usd_per_hour(paid);
}

/// Steps until a decode worker sees a cache: it checks between steps, one step later if it plans ahead.
double steps_until_seen(const Deployment& d) { return d.engine.plans_ahead() ? 1.5 : 0.5; }

/// A fleet with its best possible and its expected score.
struct Option {
  Fleet fleet;
  double bound = 0, expected = 0;
};

/// Whether twice the fleet is an option too: it carries at least twice the load.
bool has_double(const Candidate& pair, const PlanSpec& plan, const Fleet& fleet) {
  const Fleet twice{2 * fleet.replicas, 2 * fleet.prefill_replicas};
  return turns_up(load_kind(*pair.scenario.workload)) && plan.max_power.value <= 0 &&
         pair.affords(twice, plan.spare_replicas) && among_counts(twice.prefill_replicas, plan.prefill) &&
         among_counts(twice.replicas, plan.decode);
}

/// Fleets within the GPU limits with at least this many workers, most promising first.
std::vector<Option> options_of(const Candidate& pair, const PlanSpec& plan, const PairBounds& bounds, Fleet least,
                               bool prune) {
  std::vector<Option> out;
  double wait = kInfinity;
  const Seconds seen = bounds.decode.tpot * steps_until_seen(*pair.scenario.deployment);
  for (const Objective& o : pair.scenario.objectives) {
    if (o.metric != LatencyMetric::kTtft) continue;
    const double tail = o.percentile < 0 ? 1.0 : std::log(100.0 / std::max(100.0 - o.percentile, 0.01));
    const Seconds alone = bounds.prefill.ttft / kPrefillSlack;
    wait = std::min(wait, (o.limit - alone - bounds.transfer - seen) / alone / tail);
  }
  for (int p : counts_from(least.prefill_replicas, pair.most_prefill_workers(plan.spare_replicas), plan.prefill)) {
    const double usable = std::isfinite(wait) ? std::max(0.01, utilization_within(wait, p, round_robin_wait)) : 1.0;
    for (int d : counts_from(least.replicas, pair.most_replicas(plan.spare_replicas), plan.decode)) {
      const Fleet fleet{d, p};
      if (!pair.affords(fleet, plan.spare_replicas)) continue;
      if (prune && plan.goal == PlanGoal::kThroughput && has_double(pair, plan, fleet)) continue;
      const double most = bounds.requests_per_s(fleet),
                   expected = std::min(p * bounds.prefill.requests_per_s * kPrefillSlack * usable,
                                       d * bounds.decode.requests_per_s * kDecodeSlack);
      out.push_back({fleet, score_at(pair, plan, fleet, most), score_at(pair, plan, fleet, expected)});
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const Option& a, const Option& b) { return a.expected < b.expected; });
  return out;
}

class PairEvaluator {
 public:
  PairEvaluator(const Candidate& pair, const PlanSpec& plan, const PairBounds& bounds, const PairSearch& search,
                PricerPool& pricers)
      : pair_(pair),
        plan_(plan),
        bounds_(bounds),
        search_(search),
        pricers_(pricers),
        kind_(load_kind(*pair.scenario.workload)),
        load_(offered_load(*pair.scenario.workload)) {}

  Evaluation run() {
    fixed_score(plan_, kind_) ? fewest_workers() : most_throughput();
    return std::move(out_);
  }

 private:
  PlannedDeployment planned_of(const Fleet& fleet, double load, LoadResult result) const {
    return {.candidate = pair_,
            .replicas = fleet.replicas,
            .prefill_replicas = fleet.prefill_replicas,
            .spare = plan_.spare_replicas,
            .tested = fleet,
            .load = load,
            .held = kind_ == LoadKind::kWhole ? 0 : load,
            .result = std::move(result)};
  }

  const LoadResult& simulate_at(const Fleet& fleet, double load) {
    const LoadTest test{.load = load, .fleet = fleet, .seed = pair_.scenario.serving.seed, .more_requests = 1};
    out_.tried.push_back({load, fleet, test_load(pair_.scenario, test, pricers_)});
    const LoadResult& result = out_.tried.back().result;
    const bool affordable = pair_.affords(fleet, plan_.spare_replicas);
    if (!result.met && affordable && (!out_.nearest || result.worst_ratio < out_.nearest->result.worst_ratio))
      out_.nearest = planned_of(fleet, load, result);
    if (result.cut) out_.tried.back().result.metrics = {};  // no frontier shows them
    return result;
  }

  double threshold() const {
    const double own = out_.planned ? score_of(*out_.planned, plan_.goal) : kInfinity;
    if (!std::isfinite(search_.best)) return own;
    return std::min(own, search_.best > 0 ? search_.best * search_.worth : search_.best / search_.worth);
  }

  // --- the load is given -------------------------------------------------------------------------------------------

  void fewest_workers() {
    Fleet least{1, 1};
    const int most_decode = pair_.most_replicas(plan_.spare_replicas),
              most_prefill = pair_.most_prefill_workers(plan_.spare_replicas);
    if (search_.prune) {
      const double rate = least_rate(pair_.scenario);
      least.prefill_replicas = fewest(rate, bounds_.prefill.requests_per_s);
      least.replicas = fewest(rate, bounds_.decode.requests_per_s);
      const int decode = least_holding(least.replicas, most_decode, [&](int d) { return Fleet{d, most_prefill}; });
      if (decode > most_decode) return;
      least.prefill_replicas = least_holding(least.prefill_replicas, most_prefill, [&](int p) {
        return Fleet{most_decode, p};
      });
      if (least.prefill_replicas > most_prefill) return;
      least.replicas = decode;
    }
    for (const Option& option : options_of(pair_, plan_, bounds_, least, search_.prune)) {
      if (search_.prune && option.bound > threshold()) break;
      if (search_.prune && hopeless(option.fleet)) continue;
      const LoadResult& result = simulate_at(option.fleet, load_);
      if (!result.met) continue;
      PlannedDeployment planned = planned_of(option.fleet, load_, result);
      if (!within_power(planned, plan_)) {
        out_.nearest = std::move(planned);
        continue;
      }
      if (!out_.planned || option.bound < score_of(*out_.planned, plan_.goal)) out_.planned = std::move(planned);
      if (search_.prune) return;
    }
  }

  static int fewest(double rate, double each) {
    return rate > 0 && each > 0 ? std::max(1, static_cast<int>(std::ceil(rate / each - 1e-9))) : 1;
  }

  /// Whether a larger fleet has already missed.
  bool hopeless(const Fleet& fleet) const {
    return std::any_of(out_.tried.begin(), out_.tried.end(), [&](const TriedLoad& t) {
      return !t.result.met && t.fleet.replicas >= fleet.replicas && t.fleet.prefill_replicas >= fleet.prefill_replicas;
    });
  }

  /// The smallest number in [low, high] with which the fleet holds the load; high + 1 if there is none.
  template <class MakeFleet>
  int least_holding(int low, int high, MakeFleet fleet) {
    if (low > high) return high + 1;
    if (simulate_at(fleet(low), load_).met) return low;
    int bad = low, good = high + 1;
    for (int step = 1; bad + step <= high; step *= 2) {  // usually one or two more
      if (simulate_at(fleet(bad + step), load_).met) {
        good = bad + step;
        break;
      }
      bad += step;
    }
    while (good - bad > 1) {
      const int middle = bad + (good - bad) / 2;
      (simulate_at(fleet(middle), load_).met ? good : bad) = middle;
    }
    return good;
  }

  // --- as much as holds --------------------------------------------------------------------------------------------

  void most_throughput() {
    for (const Option& option : options_of(pair_, plan_, bounds_, {1, 1}, search_.prune)) {
      if (search_.prune && option.bound > threshold()) continue;
      if (!turns_up(kind_)) {
        keep_if_better(option.fleet, load_, simulate_at(option.fleet, load_));
      } else {
        turn_up(option.fleet);
      }
    }
  }

  void keep_if_better(const Fleet& fleet, double load, const LoadResult& result) {
    if (!result.met) return;
    PlannedDeployment planned = planned_of(fleet, load, result);
    if (!within_power(planned, plan_)) {
      if (!out_.nearest) out_.nearest = std::move(planned);
      return;
    }
    if (!out_.planned || score_of(planned, plan_.goal) < score_of(*out_.planned, plan_.goal))
      out_.planned = std::move(planned);
  }

  /// First the load that would beat the best, then as high as possible.
  void turn_up(const Fleet& fleet) {
    const double goal = threshold();
    const bool challenged = std::isfinite(goal) && search_.prune;
    const double rate =
        -goal * kBetter * pair_.gpus(with_spares(fleet, plan_)) / outputs();  // the rate that beats the best
    // On a grid: the load that is found does not depend on the one that had to be beaten.
    LoadRange range{.low = 0, .high = most_load(fleet), .on_grid = kind_ == LoadKind::kRate};
    std::optional<LoadResult> at_low;
    if (challenged) {
      const double low =
          kind_ == LoadKind::kRate ? challenge_rate(fleet, rate, range.high) : challenge_users(fleet, rate, range.high);
      if (low <= 0) return;
      range.low = low;
      at_low = out_.tried.back().result;
      range.at_low = &*at_low;
      keep_if_better(fleet, low, *at_low);
    }
    const HeldLoad held = held_load(pair_.scenario, range, fleet, pricers_, out_.tried);
    if (held.load > 0) return keep_if_better(fleet, held.load, held.result);
    if (!out_.nearest || held.result.worst_ratio < out_.nearest->result.worst_ratio)
      out_.nearest = planned_of(fleet, out_.tried.back().load, held.result);
  }

  double outputs() const { return pair_.scenario.workload->output_tokens.mean(); }

  /// Upper bound of the load that any fleet of these workers holds: users stay as long as the objectives allow.
  double most_load(const Fleet& fleet) const {
    const double rate = std::min(bounds_.requests_per_s(fleet), 1000.0 * (fleet.replicas + fleet.prefill_replicas));
    if (kind_ == LoadKind::kRate) return rate;
    const Deployment& d = *pair_.scenario.deployment;
    const double max_sequences = static_cast<double>(d.max_sequences()) * fleet.replicas;
    return std::clamp(1.5 * rate * longest_stay(pair_.scenario), 1.0, max_sequences);
  }

  /// The rate of the grid nearest to this one if the fleet holds it; else 0.
  double challenge_rate(const Fleet& fleet, double rate, double most) {
    if (rate >= most) return 0;
    const double next = on_grid(rate, most);
    return simulate_at(fleet, next).met ? next : 0;
  }

  /// The users with which this rate is reached, if the fleet holds them; else 0. Fewer users mean a lower rate, so the
  /// search starts at the shortest stay and increases by Little's law until the rate is reached or an objective is
  /// missed.
  double challenge_users(const Fleet& fleet, double rate, double most) {
    const LoadBounds least = bounds_.latencies();
    const Seconds stay =
        least.ttft + least.tpot * (outputs() - 1) + pair_.scenario.workload->arrivals.between_requests();
    for (double users = std::ceil(rate * stay.base()); users <= most;) {
      const LoadResult& result = simulate_at(fleet, std::max(users, 1.0));
      if (!result.met) return 0;
      const double served = result.metrics.output_tokens / outputs() / std::max(result.metrics.duration.base(), 1e-12);
      if (served >= rate) return std::max(users, 1.0);
      users = std::ceil(std::max(users * 1.03 + 1, users * rate / served));
    }
    return 0;
  }

  const Candidate& pair_;
  const PlanSpec& plan_;
  const PairBounds& bounds_;
  const PairSearch& search_;
  PricerPool& pricers_;
  LoadKind kind_;
  double load_;
  Evaluation out_;
};

}  // namespace

double PairBounds::requests_per_s(const Fleet& fleet) const {
  const double prefilled = fleet.prefill_replicas * prefill.requests_per_s,
               high = std::min(prefilled, fleet.replicas * decode.requests_per_s);
  if (!queue) return high;
  // Service times are those of the bound, which are shorter than the real ones.
  const auto waits = [&](double rate) {
    const double queueing = shared_queue_wait(rate / prefilled, fleet.prefill_replicas) / prefill.requests_per_s,
                 busy = 1 - std::exp(-rate / fleet.replicas * decode_stay);
    return queueing + busy * seen * decode.tpot.base();
  };
  double holds = 0, fails = high;
  if (waits(high * 0.9999) <= wait.base()) return high;
  for (int i = 0; i < 14; ++i) {
    const double rate = (holds + fails) / 2;
    (waits(rate) <= wait.base() ? holds : fails) = rate;
  }
  return fails;
}

namespace {

/// A mean TTFT of at most X is wait + prefill + transfer. The wait is relaxed by a fifth, because the mean of a run is
/// not that of the queue.
void limit_wait(PairBounds& bounds, const Scenario& s) {
  const WorkloadSpec& w = *s.workload;
  if (w.arrivals.process != ArrivalSpec::Process::kPoisson || w.shared_prefix_tokens > 0 || w.prefix_groups > 1 ||
      !std::isfinite(bounds.prefill.requests_per_s))
    return;
  for (const Objective& o : s.objectives) {
    if (o.metric != LatencyMetric::kTtft || o.percentile >= 0) continue;
    const Seconds wait = (o.limit - bounds.latencies().ttft) * 1.2;
    bounds.wait = bounds.queue ? std::min(bounds.wait, wait) : wait;
    bounds.queue = true;
  }
  if (!bounds.queue) return;
  bounds.decode_stay = (w.output_tokens.mean() - 1) * bounds.decode.tpot.base();
  bounds.seen = steps_until_seen(*s.deployment);
}

}  // namespace

PairBounds pair_bounds(const Candidate& pair, PricerPool& pricers) {
  const Disaggregation& split = *pair.scenario.serving.disaggregation;
  PairBounds bounds;
  bounds.prefill = prefill_bounds(pair.scenario, *split.prefill, *pricers.lend(split.prefill));
  bounds.decode = decode_bounds(pair.scenario, *pricers.lend(pair.scenario.deployment));
  const std::optional<int> prompt = pair.scenario.workload->prompt_tokens.constant();
  if (prompt && bounds.prefill.ttft > Seconds(0)) {
    const Bytes cache =
        pair.scenario.deployment->memory.layout.sequence_bytes(*prompt) * early_transfer(*split.prefill).rest(*prompt);
    bounds.transfer = cache / transfer_bandwidth(*pair.scenario.deployment, split, 1) + split.latency;
    limit_wait(bounds, pair.scenario);
  }
  return bounds;
}

PairScores best_scores(const Candidate& pair, const PlanSpec& plan, const PairBounds& bounds) {
  Fleet least{1, 1};
  if (fixed_score(plan, load_kind(*pair.scenario.workload))) {
    const double rate = least_rate(pair.scenario);
    const auto fewest = [&](double each) { return std::max(1.0, std::ceil(rate / each - 1e-9)); };
    const double prefill = fewest(bounds.prefill.requests_per_s), decode = fewest(bounds.decode.requests_per_s);
    if (prefill > pair.most_prefill_workers(plan.spare_replicas) || decode > pair.most_replicas(plan.spare_replicas))
      return {kInfinity, kInfinity};
    least = {static_cast<int>(decode), static_cast<int>(prefill)};
  }
  PairScores best{kInfinity, kInfinity};
  for (const Option& option : options_of(pair, plan, bounds, least, true))
    best = {std::min(best.bound, option.bound), std::min(best.expected, option.expected)};
  return best;
}

Evaluation evaluate_pair(const Candidate& pair, const PlanSpec& plan, const PairBounds& bounds,
                         const PairSearch& search, PricerPool& pricers) {
  return PairEvaluator(pair, plan, bounds, search, pricers).run();
}

}  // namespace roofcast
