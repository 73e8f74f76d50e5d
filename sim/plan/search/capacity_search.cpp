#include "sim/plan/search/capacity_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "sim/plan/failures.h"
#include "sim/plan/parallel.h"
#include "sim/plan/search/advice.h"
#include "sim/plan/search/pair_search.h"
#include "sim/plan/search/risk.h"
#include "sim/plan/search/search_memory.h"
#include "sim/plan/search/spares.h"
#include "sim/plan/search/tried_loads.h"
#include "sim/plan/system_spread.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

constexpr std::size_t kWave = 4;        // fixed, so that pruning does not depend on the machine
constexpr double kWorthShowing = 1.25;  // times the best score
constexpr double kPairWorthShowing = 1.1;
/// The same if fleets are judged after the search: one more replica makes a fleet of two half as expensive again.
constexpr double kWorthJudging = 1.9;

/// The state of a candidate in the search.
struct Entry {
  const Candidate* candidate = nullptr;
  LoadBounds bounds;      ///< of a replica
  PairBounds pair;        ///< of a disaggregated candidate
  double best_score = 0;  ///< lower bound of the score
  double expected = 0;    ///< expected score, which orders the search
  bool may_hold = true;   ///< within the plan's confidence
  Evaluation evaluation;
  bool simulated = false;
  bool ranked = false;                                       ///< it has a row in the ranking
  double against = std::numeric_limits<double>::infinity();  ///< score that fleets of a pair had to reach
};

/// The score of the throughput bound: of the fewest replicas for a cost, the highest rate for a throughput.
double bound_score(const Candidate& c, const PlanSpec& plan, const LoadBounds& bounds) {
  const WorkloadSpec& w = *c.scenario.workload;
  if (plan.goal == PlanGoal::kThroughput) return -bounds.requests_per_s * w.output_tokens.mean() / c.gpus();
  double replicas = 1;
  if (load_kind(w) == LoadKind::kRate)
    replicas = std::max(1.0, std::ceil(offered_load(w) / bounds.requests_per_s - 1e-9));
  if (plan.goal == PlanGoal::kCost && load_kind(w) == LoadKind::kWhole) {
    return c.gpus() * least_gpu_price(*c.scenario.deployment).value / 3600.0 * static_cast<double>(w.requests) /
           bounds.requests_per_s;
  }
  const double paid = std::min(1e6, replicas + spares_of(plan, c, static_cast<int>(std::min(1e6, replicas))));
  if (plan.goal == PlanGoal::kGpus) return c.gpus() * paid;
  return c.usd_per_hour({.replicas = static_cast<int>(paid)});  // more replicas never cost less
}

std::vector<Entry> bounded_entries(const std::vector<Candidate>& candidates, const PlanSpec& plan,
                                   PricerPool& pricers) {
  std::vector<Entry> entries(candidates.size());
  const std::vector<TruthDraw> draws = draws_of(plan, candidates.front().scenario);
  parallel_for_each_index(entries.size(), [&](std::size_t i) {
    Entry& e = entries[i];
    const Candidate& c = candidates[i];
    e.candidate = &c;
    if (c.disaggregated()) {
      e.pair = pair_bounds(c, pricers);
      e.bounds = e.pair.latencies();
      const PairScores scores = best_scores(c, plan, e.pair);
      e.best_score = scores.bound, e.expected = scores.expected;
    } else {
      e.bounds = load_bounds(c.scenario, *pricers.lend(c.scenario.deployment));
      e.best_score = e.expected = bound_score(c, plan, e.bounds);
    }
    e.may_hold = may_hold(e.bounds, c.scenario.objectives) && may_be_sure(c.scenario, e.bounds, plan.confidence, draws);
  });
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.expected < b.expected; });
  return entries;
}

Evaluation evaluate_entry(const Entry& e, const PlanSpec& plan, const PairSearch& search, PricerPool& pricers) {
  return e.candidate->disaggregated() ? evaluate_pair(*e.candidate, plan, e.pair, search, pricers)
                                      : evaluate(*e.candidate, plan, e.bounds, pricers);
}

/// Whether the entry's bound cannot come near the best score.
bool beaten(double bound, double best, const PlanSpec& plan) {
  if (!std::isfinite(best)) return false;
  if (best < 0) return bound > best / kWorthShowing;
  return bound > best * (plan.confidence > 0 ? kWorthJudging : kWorthShowing);
}

const Evaluation* known_evaluation(const Entry& e, const SearchMemory* memory) {
  if (memory == nullptr || e.candidate->disaggregated()) return nullptr;
  const auto known = memory->evaluations.find(e.candidate->index);
  return known != memory->evaluations.end() ? &known->second : nullptr;
}

void simulate_wave(const std::vector<Entry*>& wave, const PlanSpec& plan, const PairSearch& search, PricerPool& pricers,
                   SearchMemory* memory) {
  parallel_for_each_index(wave.size(), [&](std::size_t i) {
    Entry& e = *wave[i];
    std::vector<TriedLoad> before = std::move(e.evaluation.tried);
    const Evaluation* known = known_evaluation(e, memory);
    e.evaluation = known != nullptr ? *known : evaluate_entry(e, plan, search, pricers);
    e.evaluation.tried.insert(e.evaluation.tried.begin(), std::make_move_iterator(before.begin()),
                              std::make_move_iterator(before.end()));
    e.simulated = true;
    e.against = search.best;
  });
  for (const Entry* e : wave) {
    if (memory != nullptr && !e->candidate->disaggregated())
      memory->evaluations.try_emplace(e->candidate->index, e->evaluation);
  }
}

void simulate_entries(std::vector<Entry>& entries, const PlanSpec& plan, bool prune, PricerPool& pricers,
                      SearchMemory* memory) {
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t begin = 0; begin < entries.size();) {
    std::vector<Entry*> wave;
    for (; begin < entries.size() && wave.size() < kWave; ++begin) {
      Entry& e = entries[begin];
      if (!prune || (!beaten(e.best_score, best, plan) && e.may_hold)) wave.push_back(&e);
    }
    simulate_wave(wave, plan, {.best = best, .worth = kPairWorthShowing, .prune = prune}, pricers, memory);
    for (const Entry* e : wave) {
      if (e->evaluation.planned) best = std::min(best, score_of(*e->evaluation.planned, plan.goal));
    }
  }
}

/// If bounds ruled out all candidates of a GPU or format, simulates its most promising one, so that the table shows it.
void simulate_best_of_each(std::vector<Entry>& entries, const PlanSpec& plan, PricerPool& pricers,
                           SearchMemory* memory) {
  std::vector<Entry*> wanted;
  const auto add_missing = [&](auto key_of) {
    std::map<std::string, Entry*> best;
    for (Entry& e : entries) {
      if (e.candidate->disaggregated()) continue;
      const auto [at, added] = best.emplace(key_of(*e.candidate), &e);
      if (!added && e.simulated && !at->second->simulated) at->second = &e;
    }
    for (auto& [key, e] : best) {
      const bool chosen = std::find(wanted.begin(), wanted.end(), e) != wanted.end();
      if (!e->simulated && !chosen && e->may_hold) wanted.push_back(e);
    }
  };
  add_missing([](const Candidate& c) { return c.gpu; });
  add_missing([](const Candidate& c) { return c.precision; });
  add_missing([](const Candidate& c) { return c.scenario.deployment->engine.name; });
  simulate_wave(wanted, plan, {.best = std::numeric_limits<double>::infinity()}, pricers, memory);
}

/// Ranks the entries and confirms the first row, until the first row is confirmed.
void rank(PlanResult& out, std::vector<Entry>& entries, const PlanSpec& plan, bool confirming, PricerPool& pricers) {
  std::vector<PlannedDeployment>& ranked = out.ranked;
  for (Entry& e : entries) {
    if (!e.evaluation.planned || e.ranked) continue;
    ranked.push_back(std::move(*e.evaluation.planned));
    e.ranked = true;
  }
  const auto sort = [&] {
    std::stable_sort(ranked.begin(), ranked.end(),
                     [&](const auto& a, const auto& b) { return better(a, b, plan.goal); });
  };
  sort();
  while (confirming && !ranked.empty() && !ranked.front().confirmed) {
    PlannedDeployment& first = ranked.front();
    const PlannedDeployment before = first;
    if (!confirm(first, plan, pricers)) {
      out.nearest = std::move(first);
      ranked.erase(ranked.begin());
    } else if (first.gpus() != before.gpus() || first.load != before.load) {  // it was judged as another fleet
      first.probability.reset();
      std::erase_if(out.forecasts, [&](const auto& f) { return f.candidate.index == before.candidate.index; });
    }
    sort();
  }
}

/// Confident fleets are larger, or carry less, than the forecast's best, against which candidates were pruned.
/// Simulates candidates that may beat the best confident fleet; if there is none, the next few dozen by bound.
void search_further(PlanResult& out, std::vector<Entry>& entries, const PlanSpec& plan, PricerPool& pricers,
                    SearchMemory* memory) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr int kMostInVain = 16;  // waves
  for (int in_vain = 0; in_vain < kMostInVain; in_vain += out.ranked.empty() ? 1 : 0) {
    const double best = out.ranked.empty() ? kInfinity : score_of(out.ranked.front(), plan.goal);
    std::vector<Entry*> wave;
    for (Entry& e : entries) {
      const bool again = e.candidate->disaggregated() && e.against < best;
      const bool worse = e.best_score > best + 1e-9 * std::abs(best);  // one as good may be surer
      if (e.ranked || !e.may_hold || (e.simulated && !again) || worse) continue;
      wave.push_back(&e);
      if (wave.size() == kWave) break;
    }
    if (wave.empty()) return;
    simulate_wave(wave, plan, {.best = best}, pricers, memory);
    rank(out, entries, plan, true, pricers);
    judge_ranking(out, plan, pricers);
  }
}

/// Notes for each GPU without a ranked row why that is so.
void note_missing_gpus(PlanResult& out, const std::vector<Entry>& entries, const PlanSpec& plan) {
  std::map<std::string, const Entry*> best;  // by GPU, the most promising candidate
  for (const Entry& e : entries) {
    if (e.candidate->disaggregated()) continue;
    const auto [at, added] = best.emplace(e.candidate->gpu, &e);
    const auto promise = [](const Entry& x) { return std::tuple{!x.may_hold, x.best_score}; };
    if (!added && promise(e) < promise(*at->second)) at->second = &e;
  }
  for (const PlannedDeployment& p : out.ranked) {
    best.erase(p.candidate.scenario.deployment->gpu.name);
    if (p.candidate.disaggregated()) best.erase(p.candidate.prefill().gpu.name);
  }
  const auto judged = [&](const std::string& gpu) {  // the forecast meets the objectives, but too few draws do
    return std::any_of(out.forecasts.begin(), out.forecasts.end(),
                       [&](const PlannedDeployment& f) { return f.candidate.gpu == gpu; });
  };
  for (const auto& [gpu, e] : best) {
    if (judged(gpu)) {
      out.notes.push_back(unsure_gpu_note(gpu, plan.confidence));
      continue;
    }
    const std::string why = !e->may_hold   ? "no request alone would meet the objectives as surely as asked"
                            : e->simulated ? "on the GPUs allowed it misses an objective"
                                           : fmt::format("its best layout ({}) cannot come near the winner",
                                                         layout_of(e->candidate->scenario.deployment->sharding));
    out.notes.push_back(fmt::format("no row of {}: {}", gpu, why));
  }
}

/// Why even the largest fleet is far from the objectives.
std::string failures_of(const PlannedDeployment& p) {
  const ServingMetrics& m = p.result.metrics;
  return fmt::format("{} of {} requests fail on {} x {}: {}", m.failed, m.completed + m.failed, p.gpus(),
                     p.candidate.gpu,
                     failure_words(m, *p.candidate.scenario.deployment,
                                   p.candidate.disaggregated() ? &p.candidate.prefill() : nullptr));
}

/// The factor by which it misses the objectives or the power limit, whichever is worse; above 1.
double miss_of(const PlannedDeployment& p, const PlanSpec& plan) {
  const double power = plan.max_power.value > 0 ? p.power_bound().value / plan.max_power.value : 0;
  return std::max(p.result.worst_ratio, power);
}

void find_nearest(PlanResult& out, std::vector<Entry>& entries, const PlanSpec& plan, PricerPool& pricers) {
  const bool none = std::none_of(entries.begin(), entries.end(), [](const Entry& e) { return e.simulated; });
  const PairSearch search{.best = std::numeric_limits<double>::infinity()};
  for (std::size_t i = 0; none && i < std::min<std::size_t>(entries.size(), 8); ++i)
    entries[i].evaluation = evaluate_entry(entries[i], plan, search, pricers);
  for (Entry& e : entries) {
    auto& near = e.evaluation.nearest;
    const ServingMetrics* m = near ? &near->result.metrics : nullptr;
    const bool failed = m != nullptr && m->failed > 0 && !serves_enough(*m, e.candidate->scenario.goodput);
    if (failed && out.reason.empty()) out.reason = failures_of(*near);
    if (near && !failed && (!out.nearest || miss_of(*near, plan) < miss_of(*out.nearest, plan)))
      out.nearest = std::move(near);
  }
}

/// Simulates the best deployments at lower loads, for the fast end of the frontier: one replica, or the whole fleet.
void lighten_loads(const PlanResult& out, std::vector<Entry>& entries, PricerPool& pricers, SearchMemory* memory) {
  constexpr std::array kShares{0.05, 0.15, 0.4, 0.7};
  if (out.kind == LoadKind::kWhole) return;
  parallel_for_each_index(std::min<std::size_t>(out.ranked.size(), 5), [&](std::size_t i) {
    const PlannedDeployment& p = out.ranked[i];
    Entry& e = *std::find_if(entries.begin(), entries.end(),
                             [&](const Entry& entry) { return entry.candidate->index == p.candidate.index; });
    const bool apart = p.candidate.disaggregated();
    const Fleet fleet = apart ? p.fleet() : Fleet{};
    for (double share : kShares) {
      const double part = (apart ? p.load : p.load / p.replicas) * share,
                   load = out.kind == LoadKind::kUsers ? std::max(1.0, std::round(part)) : part;
      if (find_tried(e.evaluation.tried, load, fleet) != nullptr) continue;
      const LoadTest test{.load = load, .fleet = fleet, .seed = p.candidate.scenario.serving.seed, .more_requests = 1};
      e.evaluation.tried.push_back({load, fleet, test_load(p.candidate.scenario, test, pricers)});
    }
  });
  if (memory == nullptr) return;
  for (const Entry& e : entries) {
    const auto known = memory->evaluations.find(e.candidate->index);
    if (known != memory->evaluations.end() && known->second.tried.size() < e.evaluation.tried.size())
      known->second.tried = e.evaluation.tried;
  }
}

/// Output tokens/s. An open load is served at its arrival rate; the measured rate is slightly lower, because the
/// machine drains at the end of a run.
double output_rate(const WorkloadSpec& w, double load, const ServingMetrics& m) {
  if (load_kind(w) == LoadKind::kRate && m.completed > 0)
    return load * m.output_tokens / static_cast<double>(m.completed);
  return m.output_tokens / std::max(m.duration.base(), 1e-12);
}

ParetoPoint pareto_point(const Candidate& c, const TriedLoad& t) {
  const ServingMetrics& m = t.result.metrics;
  const double tpot = m.tpot_ms.percentile(50), replicas = c.disaggregated() ? 1 : t.fleet.replicas,
               gpus = c.gpus(t.fleet);
  ParetoPoint p{.candidate = c.index,
                .fleet = t.fleet,
                .gpus = static_cast<int>(gpus / replicas),
                .load = t.load / replicas,
                .tokens_per_s_per_user = tpot > 0 ? 1000.0 / tpot : 0};
  p.tokens_per_s_per_gpu = output_rate(*c.scenario.workload, t.load, m) / gpus;
  if (p.tokens_per_s_per_gpu > 0) {
    const double hours = m.output_tokens / (p.tokens_per_s_per_gpu * gpus) / 3600.0;
    p.usd_per_million_output =
        token_bill(c.usd_per_hour(t.fleet) * hours, m, c.scenario, t.fleet.replicas, t.fleet.prefill_replicas)
            .usd_per_million_output;
  }
  p.ttft_p99 = m.ttft_ms.percentile(99) * kMillisecond;
  const Objective* limited = frontier_objective(c.scenario);
  const auto verdict = std::find_if(t.result.verdicts.begin(), t.result.verdicts.end(), [&](const Verdict& v) {
    return limited != nullptr && v.objective.name() == limited->name();
  });
  p.limited = limited == nullptr                   ? p.ttft_p99
              : verdict != t.result.verdicts.end() ? verdict->upper  // what `met` is judged by
                                                   : observed(*limited, m);
  p.met = t.result.met;
  return p;
}

/// Whether two runs of one fleet are so similar that a table would show the same row twice.
bool same_row(const ParetoPoint& a, const ParetoPoint& b) {
  const auto near = [](double x, double y) { return std::abs(x - y) <= 0.003 * std::max(std::abs(x), std::abs(y)); };
  return a.candidate == b.candidate && a.met == b.met && near(a.tokens_per_s_per_user, b.tokens_per_s_per_user) &&
         near(a.tokens_per_s_per_gpu, b.tokens_per_s_per_gpu);
}

bool faster(const ParetoPoint& a, const ParetoPoint& b) { return a.tokens_per_s_per_gpu > b.tokens_per_s_per_gpu; }
bool cheaper(const ParetoPoint& a, const ParetoPoint& b) { return a.usd_per_million_output < b.usd_per_million_output; }

/// The points that no other beats in both tokens/s per user and `better`, fastest for the user first.
template <class Better>
std::vector<ParetoPoint> frontier_of(std::vector<ParetoPoint> points, const Better& better) {
  std::stable_sort(points.begin(), points.end(), [&](const ParetoPoint& a, const ParetoPoint& b) {
    return a.tokens_per_s_per_user != b.tokens_per_s_per_user ? a.tokens_per_s_per_user > b.tokens_per_s_per_user
                                                              : better(a, b);
  });
  std::vector<ParetoPoint> out;
  for (const ParetoPoint& p : points) {
    if (out.empty() || (better(p, out.back()) && !same_row(p, out.back()))) out.push_back(p);
  }
  return out;
}

/// The frontier per type of GPU, ordered by name.
template <class Better>
std::vector<ParetoPoint> frontiers_by_gpu(const PlanResult& r, const std::vector<ParetoPoint>& points,
                                          const Better& better) {
  std::map<std::uint64_t, std::string> gpus;
  for (const Candidate& c : r.candidates) gpus[c.index] = c.gpu;
  std::map<std::string, std::vector<ParetoPoint>> of_each;
  for (const ParetoPoint& p : points) of_each[gpus.at(p.candidate)].push_back(p);
  std::vector<ParetoPoint> out;
  for (auto& [gpu, own] : of_each) {
    for (ParetoPoint& p : frontier_of(std::move(own), better)) out.push_back(p);
  }
  return out;
}

void find_frontiers(PlanResult& out, const std::vector<Entry>& entries) {
  std::vector<ParetoPoint> points;
  for (const Entry& e : entries) {
    for (const TriedLoad& t : e.evaluation.tried) {
      const bool served = serves_enough(t.result.metrics, e.candidate->scenario.goodput);
      const bool steady = served && t.result.stationary && !t.result.cut;
      if (steady && e.candidate->affords(t.fleet, 0)) points.push_back(pareto_point(*e.candidate, t));
    }
  }
  out.frontier = frontier_of(points, faster);
  out.gpu_frontiers = frontiers_by_gpu(out, points, faster);
  std::erase_if(points, [](const ParetoPoint& p) { return !(p.usd_per_million_output > 0); });  // the price is unknown
  out.cost_frontier = frontier_of(points, cheaper);
  out.gpu_cost_frontiers = frontiers_by_gpu(out, points, cheaper);
}

}  // namespace

const Objective* frontier_objective(const Scenario& s) {
  const auto other = std::find_if(s.objectives.begin(), s.objectives.end(),
                                  [](const Objective& o) { return o.metric != LatencyMetric::kTpot; });
  return s.objectives.empty() ? nullptr : other != s.objectives.end() ? &*other : &s.objectives.front();
}

double PlannedDeployment::output_tokens_per_s() const {
  return output_rate(*candidate.scenario.workload, tested_load(), result.metrics) * replicas /
         std::max(tested.replicas, 1);
}
FleetCost PlannedDeployment::cost() const {
  std::optional<Disaggregation> split = candidate.scenario.serving.disaggregation;
  if (split) split->prefill_replicas = tested.prefill_replicas;
  return fleet_cost(result.metrics, *candidate.scenario.deployment, tested.replicas, split);
}
/// Power of the spare replicas, which idle.
Watts PlannedDeployment::spare_power() const {
  double watts = spare * candidate.gpus() * candidate.scenario.deployment->gpu.idle_power.value;
  if (candidate.disaggregated()) watts += spare * candidate.prefill_gpus() * candidate.prefill().gpu.idle_power.value;
  return {watts};
}
Watts PlannedDeployment::power() const {
  const double share = static_cast<double>(replicas) / std::max(tested.replicas, 1);
  return {mean_power(cost(), result.metrics).value * share + spare_power().value};
}
Watts PlannedDeployment::power_bound() const {
  const double share = static_cast<double>(replicas) / std::max(tested.replicas, 1);
  const FleetCost of = cost();
  const double most =
      mean_power(of, result.metrics).value * std::exp(power_spread(*candidate.scenario.deployment).high);
  return {std::min(most, of.board_power.value) * share + spare_power().value};
}
double PlannedDeployment::tokens_per_s_per_gpu() const { return output_tokens_per_s() / gpus(); }
double PlannedDeployment::tokens_per_s_per_user() const {
  const double tpot = result.metrics.tpot_ms.percentile(50);
  return tpot > 0 ? 1000.0 / tpot : 0;
}

bool better(const PlannedDeployment& a, const PlannedDeployment& b, PlanGoal goal) {
  const double x = score_of(a, goal), y = score_of(b, goal);
  if (std::abs(x - y) > 1e-9 * std::max(std::abs(x), std::abs(y))) return x < y;
  if (a.gpus() != b.gpus()) return a.gpus() < b.gpus();
  if (std::abs(a.usd_per_hour() - b.usd_per_hour()) > 1e-9 * a.usd_per_hour())
    return a.usd_per_hour() < b.usd_per_hour();
  const double sure_a = a.probability.value_or(0), sure_b = b.probability.value_or(0);
  if (std::abs(sure_a - sure_b) > 1e-9) return sure_a > sure_b;
  if (a.result.worst_ratio != b.result.worst_ratio) return a.result.worst_ratio < b.result.worst_ratio;
  return a.candidate.index < b.candidate.index;
}

double score_of(const PlannedDeployment& p, PlanGoal goal) {
  switch (goal) {
    case PlanGoal::kCost:  // of a batch job, its total cost
      if (load_kind(*p.candidate.scenario.workload) == LoadKind::kWhole)
        return p.usd_per_hour() * p.result.metrics.duration.in(kHour);
      return p.usd_per_hour();
    case PlanGoal::kGpus:
      return p.gpus();
    case PlanGoal::kThroughput:
      break;
  }
  return -p.tokens_per_s_per_gpu();
}

namespace {

/// Candidates of the plan, or of the only type of GPU wanted.
Candidates candidates_for(const PlanSpec& plan, const SearchOptions& options) {
  const bool known = options.memory && options.memory->candidates;
  Candidates out = known ? *options.memory->candidates : read_candidates(plan, options.fidelity);
  if (options.memory && !known) options.memory->candidates = out;
  if (options.only_gpu.empty()) return out;
  std::erase_if(out.kept, [&](const Candidate& c) {
    return c.gpu != options.only_gpu || (c.disaggregated() && c.prefill().gpu.name != options.only_gpu);
  });
  return out;
}

}  // namespace

PlanResult search_capacity(const PlanSpec& plan, const SearchOptions& options) {
  PlanResult out;
  Candidates candidates = candidates_for(plan, options);
  if (options.memory) out.pricers = options.memory->pricers;
  out.considered = candidates.considered, out.unsplittable = candidates.unsplittable,
  out.mistaken = candidates.mistaken, out.beyond_gpus = candidates.beyond_gpus;
  out.too_large = candidates.too_large, out.pairs = candidates.pairs;
  out.unsupported = candidates.unsupported, out.unpriced = candidates.unpriced;
  out.unpowered = candidates.unpowered;
  out.too_dear = candidates.too_dear, out.below_availability = candidates.below_availability;
  out.kind = candidates.kind;
  out.notes = std::move(candidates.notes);
  out.candidates = std::move(candidates.kept);
  if (out.candidates.empty()) {
    out.reason = out.too_dear > 0 ? candidates.cost_reason : candidates.first_reason;
    const std::uint64_t wrong = out.unsplittable + out.mistaken + out.beyond_gpus;
    if (out.reason.empty() && wrong < out.considered && plan.disaggregated)
      out.reason = "no prefill worker of the space can be paired with a decode worker on the GPUs there are";
    if (out.reason.empty() && !out.notes.empty()) out.reason = out.notes.front();
    if (out.reason.empty()) out.reason = "no candidate can be split over the GPUs there are";
    if (out.too_dear > 0 && options.advise) out.advice = advice_for(out, plan, options);
    return out;
  }
  PricerPool& pricers = *out.pricers;
  std::vector<Entry> entries = bounded_entries(out.candidates, plan, pricers);
  simulate_entries(entries, plan, options.prune, pricers, options.memory.get());
  const bool none_sure = std::none_of(entries.begin(), entries.end(), [](const Entry& e) { return e.simulated; });
  if (none_sure) {
    for (Entry& e : entries) e.may_hold = may_hold(e.bounds, e.candidate->scenario.objectives);
    // The nearest deployment is that of the forecast.
    simulate_entries(entries, plan, options.prune, pricers, options.memory.get());
  }
  if (options.confirm) simulate_best_of_each(entries, plan, pricers, options.memory.get());
  rank(out, entries, plan, options.confirm, pricers);
  if (options.confirm && plan.confidence > 0) {
    judge_ranking(out, plan, pricers);
    if (out.draws > 0 && options.prune && !none_sure) search_further(out, entries, plan, pricers, options.memory.get());
    if (!out.ranked.empty()) price_confidence(out, 0, plan, pricers);
  }
  for (const Entry& e : entries) {
    out.simulated += e.simulated ? 1 : 0;
    out.simulations += e.evaluation.tried.size();
  }
  out.bounded = entries.size() - out.simulated;
  lighten_loads(out, entries, pricers, options.memory.get());
  find_frontiers(out, entries);
  if (out.ranked.empty()) find_nearest(out, entries, plan, pricers);
  if (out.nearest && out.nearest->result.cut) {
    PlannedDeployment& n = *out.nearest;
    const Scenario& s = n.candidate.scenario;
    n.result = test_load(
        s, {.load = n.tested_load(), .fleet = n.tested, .seed = s.serving.seed, .more_requests = 1, .to_the_end = true},
        pricers);
  }
  if (!out.ranked.empty() && options.confirm) note_missing_gpus(out, entries, plan);
  if (out.ranked.empty() && options.advise) out.advice = advice_for(out, plan, options);
  return out;
}

}  // namespace roofcast
