#include "sim/plan/search/risk.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error_summary.h"
#include "sim/plan/parallel.h"
#include "sim/plan/planned_spread.h"
#include "sim/plan/search/fleet_size.h"
#include "sim/plan/search/spares.h"
#include "sim/plan/serving_intervals.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

constexpr std::size_t kJudged = 4;     // judged rows; later rows keep the forecast's fleets
constexpr int kStepsOfLoad = 32;       // steps per factor of two of the load
constexpr int kMostStepsOfLoad = 128;  // gives up below a sixteenth of the forecast's load

ForecastId id_of(const PlannedDeployment& p, const PlanSpec& plan) {
  return {.candidate = p.candidate.index,
          .deployment = p.candidate.scenario.deployment.get(),
          .replicas = p.replicas,
          .prefill_replicas = p.prefill_replicas,
          .tested = p.tested.replicas,
          .completed = p.result.metrics.completed,
          .load = p.load,
          .duration = p.result.metrics.duration.base(),
          .load_uncertainty = plan.load_uncertainty};
}

/// One candidate at several sizes (or loads), in the same draws.
class Sizer {
 public:
  Sizer(const PlannedDeployment& nominal, const PlanSpec& plan, const std::vector<TruthDraw>& draws,
        PricerPool& pricers)
      : nominal_(nominal),
        plan_(plan),
        pricers_(pricers),
        truths_(nominal.candidate.scenario, nominal.result.metrics, nominal.tested.replicas, plan.load_uncertainty),
        tried_(pricers.draws().of(id_of(nominal, plan))) {
    std::vector<std::pair<double, const TruthDraw*>> by_harm;
    for (const TruthDraw& draw : draws) by_harm.emplace_back(truths_.harm(draw, nominal.result.metrics), &draw);
    std::stable_sort(by_harm.begin(), by_harm.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [harm, draw] : by_harm) draws_.push_back(*draw);
  }

  /// `step` 0 is the forecast's fleet. Each further step adds one replica, or lowers the load by one part in 32.
  PlannedDeployment at(int step) const {
    PlannedDeployment p = nominal_;
    if (plan_.goal == PlanGoal::kThroughput) {
      const double factor = std::exp2(-static_cast<double>(step) / kStepsOfLoad);
      p.load *= factor, p.held *= factor;
      if (load_kind(*p.candidate.scenario.workload) == LoadKind::kUsers) {
        p.load = std::max(1.0, std::floor(p.load));
        p.held = std::max(1.0, std::floor(p.held));
      }
      return p;
    }
    const bool whole = p.tested.replicas == p.replicas;
    for (int i = 0; i < step; ++i) {
      // Both roles grow in proportion; a step of a large fleet is a part of it.
      const bool prefill = p.candidate.disaggregated() &&
                           p.prefill_replicas * nominal_.replicas < p.replicas * nominal_.prefill_replicas;
      (prefill ? p.prefill_replicas : p.replicas) +=
          p.candidate.disaggregated() ? 1 : std::max(1, nominal_.replicas / 64);
    }
    if (whole) p.tested = p.fleet();
    p.spare = spares_of(plan_, p.candidate, p.replicas);
    return p;
  }
  bool possible(int step) const {
    const PlannedDeployment p = at(step);
    if (plan_.goal == PlanGoal::kThroughput) return step <= kMostStepsOfLoad;
    return p.candidate.affords(p.fleet(), p.spare);
  }

  /// The worst draw that must hold. Of a fleet that fails in it and holds in enough others, the next in which it holds.
  const TruthDraw& hard_draw(double confidence) {
    const std::size_t needed = rank_of(confidence);
    if (nominal_.probability && *nominal_.probability >= confidence - 1e-9) {
      for (std::size_t rank = needed; rank < draws_.size(); ++rank) {
        if (holds_in_rank(0, rank)) return draws_[rank];
      }
    }
    return draws_[needed];
  }
  const Truths& truths() const { return truths_; }
  /// Rank of the worst draw that must hold.
  std::size_t rank_of(double confidence) const {
    const auto needed = static_cast<std::size_t>(std::ceil(confidence * static_cast<double>(draws_.size()) - 1e-9));
    return std::clamp<std::size_t>(needed, 1, draws_.size()) - 1;
  }

  /// Number of draws in which it holds, from harmless on, up to the first failure.
  std::size_t holding(int step) {
    std::size_t good = 0, bad = draws_.size() + 1;  // draws, not ranks
    while (bad - good > 1) {
      const std::size_t middle = good + (bad - good) / 2;
      (holds_in_rank(step, middle - 1) ? good : bad) = middle;
    }
    return good;
  }
  double probability(int step) { return static_cast<double>(holding(step)) / static_cast<double>(draws_.size()); }

  /// Whether it holds in enough draws for `confidence`, whichever they are.
  bool holds_in_enough(int step, double confidence) {
    std::size_t may_fail = draws_.size() - 1 - rank_of(confidence);
    for (std::size_t rank = draws_.size(); rank-- > 0;) {  // the worst draws decide soonest
      if (!holds_in_rank(step, rank) && may_fail-- == 0) return false;
    }
    return true;
  }
  /// The fewest steps, at most `here`, at which enough draws hold; `here` is taken to hold.
  int fewest_down_from(int here, double confidence) {
    while (here > 0 && holds_in_enough(here - 1, confidence)) --here;
    return here;
  }
  /// The fewest steps from `step` on at which enough draws hold; -1: none found.
  int fewest_up_from(int step, double confidence) {
    constexpr int kMost = 16;
    for (const int last = step + kMost; step <= last && possible(step); ++step) {
      if (holds_in_enough(step, confidence)) return step;
    }
    return -1;
  }
  /// The step that equals this fleet; -1: none.
  int step_of(const PlannedDeployment& p) const {
    for (int step = 0; at(step).gpus() <= p.gpus(); ++step) {
      const PlannedDeployment here = at(step);
      if (here.replicas == p.replicas && here.prefill_replicas == p.prefill_replicas) return step;
    }
    return -1;
  }

  /// The fewest steps with which it holds; -1: none. `first` is tried first.
  int fewest(double confidence, int first) { return fewest_in(rank_of(confidence), 0, first); }

  /// The same, checking that no draw considered harmless fails.
  int fewest_checked(double confidence, int first) {
    int step = fewest(confidence, first);
    for (std::size_t held = 0; step >= 0 && (held = holding(step)) <= rank_of(confidence);)
      step = fewest_in(held, step, std::max(1, first / 4));
    return step;
  }

  /// The fewest steps at which enough draws hold, in whatever order; -1: none. Slower, as most draws are simulated.
  int fewest_in_any_order(double confidence) {
    int beyond = 1;
    while (possible(beyond)) beyond *= 2;
    int bad = -1, good = most_possible(0, beyond);
    if (!holds_in_enough(good, confidence)) return -1;
    while (good - bad > 1) {
      const int middle = bad + (good - bad) / 2;
      (holds_in_enough(middle, confidence) ? good : bad) = middle;
    }
    return good;
  }
  double share_held(int step) {
    std::size_t held = 0;
    for (std::size_t rank = 0; rank < draws_.size(); ++rank) held += holds_in_rank(step, rank) ? 1 : 0;
    return static_cast<double>(held) / static_cast<double>(draws_.size());
  }

 private:
  bool holds_in_rank(int step, std::size_t rank) {
    const auto key = std::pair{step, rank};
    const auto known = tried_->find(key);
    if (known != tried_->end()) return known->second;
    return (*tried_)[key] = holds_in(draws_[rank], truths_, at(step), pricers_);
  }
  /// The fewest steps beyond `bad` with which the draw of this rank holds.
  int fewest_in(std::size_t rank, int bad, int first) {
    if (holds_in_rank(bad, rank)) return bad;
    int stride = std::max(1, first), good = bad + stride;
    for (bool last = false; true; stride *= 2, good = bad + stride) {
      if (!possible(good)) good = most_possible(bad, good), last = true;
      if (good <= bad) return -1;
      if (holds_in_rank(good, rank)) break;
      if (last) return -1;
      bad = good;
    }
    while (good - bad > 1) {
      const int middle = bad + (good - bad) / 2;
      (holds_in_rank(middle, rank) ? good : bad) = middle;
    }
    return good;
  }
  int most_possible(int good, int bad) const {
    while (bad - good > 1) {
      const int middle = good + (bad - good) / 2;
      (possible(middle) ? good : bad) = middle;
    }
    return good;
  }

  const PlannedDeployment& nominal_;
  const PlanSpec& plan_;
  std::vector<TruthDraw> draws_;  // from harmless to harmful
  PricerPool& pricers_;
  Truths truths_;
  std::shared_ptr<DrawsHeld> tried_;
};

/// Steps that nine of ten draws are likely to require: a sixth more replicas.
int first_guess(const PlannedDeployment& p, const PlanSpec& plan) {
  if (plan.goal == PlanGoal::kThroughput) return kStepsOfLoad / 3;
  return std::max(1, (p.replicas + p.prefill_replicas) / 6);
}

/// The forecast of a fleet of another size.
void forecast(PlannedDeployment& p, PricerPool& pricers) {
  const Scenario& s = p.candidate.scenario;
  p.result = test_load(s, {.load = p.tested_load(), .fleet = p.tested, .seed = s.serving.seed + 1, .more_requests = 1},
                       pricers);
  p.confirmed = true;
}

SaferFleet safer_fleet(const PlannedDeployment& p, double confidence) {
  return {
      .confidence = confidence, .fleet = p.fleet(), .load = p.load, .gpus = p.gpus(), .usd_per_hour = p.usd_per_hour()};
}

/// Whether there are objectives that could be missed.
bool has_limits(const Scenario& s) {
  const LoadKind kind = load_kind(*s.workload);
  return kind != LoadKind::kWhole && (!s.objectives.empty() || s.goodput > 0 || kind == LoadKind::kRate);
}

}  // namespace

namespace {

LoadTest test_in(const TruthDraw& draw, const Truths& truths, const PlannedDeployment& p, PricerPool& pricers) {
  return {.load = p.tested_load() * truths.load_factor(draw),
          .fleet = p.tested,
          .seed = p.candidate.scenario.serving.seed + 1,
          .more_requests = 1,
          .pricer = truths.pricers_in(draw, pricers.factory())};
}

}  // namespace

bool holds_in(const TruthDraw& draw, const Truths& truths, const PlannedDeployment& p, PricerPool& pricers) {
  const Scenario truth = truths.scenario_in(draw);
  return test_load(truth, test_in(draw, truths, p, pricers), pricers).held(truth);
}

namespace {

/// The result of one draw for a fleet.
struct Outcome {
  std::vector<double> seconds = {};  ///< of each objective, first tokens as much later as they are in the draw
  bool held = false, steady = false, whole = false;
};

Outcome outcome_in(const TruthDraw& draw, const Truths& truths, const PlannedDeployment& p, bool to_the_end,
                   PricerPool& pricers) {
  const Scenario truth = truths.scenario_in(draw);
  LoadTest test = test_in(draw, truths, p, pricers);
  test.to_the_end = to_the_end;
  const LoadResult result = test_load(truth, test, pricers);
  Outcome out{.held = result.held(truth), .steady = result.stationary, .whole = !result.cut};
  const std::vector<Objective>& asked = p.candidate.scenario.objectives;
  for (std::size_t k = 0; k < asked.size(); ++k)
    out.seconds.push_back(observed(truth.objectives[k], result.metrics).base() *
                          (asked[k].limit / truth.objectives[k].limit));
  return out;
}

double share_held(const std::vector<Outcome>& outcomes) {
  const auto held = std::count_if(outcomes.begin(), outcomes.end(), [](const Outcome& o) { return o.held; });
  return static_cast<double>(held) / static_cast<double>(outcomes.size());
}

/// The worst draws first, in waves of a fixed size and each only as far as it can still hold, until too few can hold
/// for `confidence`. Those that were not simulated count as held, so that share_held() is the most it can be.
std::vector<Outcome> outcomes_until_decided(const std::vector<TruthDraw>& draws, const Truths& truths,
                                            const PlannedDeployment& p, double confidence, PricerPool& pricers) {
  constexpr std::size_t kWave = 8;
  std::vector<std::pair<double, std::size_t>> worst;
  for (std::size_t i = 0; i < draws.size(); ++i) worst.emplace_back(-truths.harm(draws[i], p.result.metrics), i);
  std::stable_sort(worst.begin(), worst.end());
  std::vector<Outcome> outcomes(draws.size(), Outcome{.held = true});
  for (std::size_t begin = 0; begin < worst.size() && share_held(outcomes) >= confidence - 1e-9; begin += kWave) {
    parallel_for_each_index(std::min(kWave, worst.size() - begin), [&](std::size_t k) {
      const std::size_t i = worst[begin + k].second;
      outcomes[i] = outcome_in(draws[i], truths, p, false, pricers);
    });
  }
  return outcomes;
}

/// Sets ranges and probability from all draws.
void take_outcomes(PlannedDeployment& p, const std::vector<Outcome>& outcomes) {
  const Scenario& s = p.candidate.scenario;
  const auto share = [&](auto has) {
    return static_cast<double>(std::count_if(outcomes.begin(), outcomes.end(), has)) /
           static_cast<double>(outcomes.size());
  };
  p.in_all_draws = true;
  p.probability = share_held(outcomes);
  p.unsteady = share([](const Outcome& o) { return !o.steady; });
  p.ranges.clear();
  for (std::size_t k = 0; k < s.objectives.size(); ++k) {
    std::vector<double> seconds;
    for (const Outcome& o : outcomes) seconds.push_back(o.seconds[k]);
    const double limit = s.objectives[k].limit.base();
    p.ranges.push_back({.low = Seconds(quantile(seconds, 0.05)),
                        .high = Seconds(quantile(seconds, 0.95)),
                        .missed = share([&](const Outcome& o) { return o.seconds[k] > limit; })});
  }
}

/// Sets the same from `outcomes`, after completing draws that were skipped or cut.
void complete_draws(std::vector<Outcome> outcomes, const std::vector<TruthDraw>& draws, const Truths& truths,
                    PlannedDeployment& p, PricerPool& pricers) {
  parallel_for_each_index(draws.size(), [&](std::size_t i) {
    if (!outcomes[i].whole) outcomes[i] = outcome_in(draws[i], truths, p, true, pricers);
  });
  take_outcomes(p, outcomes);
}

Truths truths_of(const PlannedDeployment& p, const PlanSpec& plan) {
  return Truths(p.candidate.scenario, p.result.metrics, p.tested.replicas, plan.load_uncertainty);
}

}  // namespace

void simulate_all_draws(PlannedDeployment& p, const PlanSpec& plan, PricerPool& pricers) {
  const std::vector<TruthDraw> draws = draws_of(plan, p.candidate.scenario);
  if (draws.empty() || !p.probability) return;
  complete_draws(std::vector<Outcome>(draws.size()), draws, truths_of(p, plan), p, pricers);
}

bool simulate_draws_if_sure(PlannedDeployment& p, const PlanSpec& plan, PricerPool& pricers) {
  const std::vector<TruthDraw> draws = draws_of(plan, p.candidate.scenario);
  if (draws.empty() || !p.probability) return true;
  const Truths truths = truths_of(p, plan);
  std::vector<Outcome> outcomes = outcomes_until_decided(draws, truths, p, plan.confidence, pricers);
  const bool sure = share_held(outcomes) >= plan.confidence - 1e-9;
  if (sure) complete_draws(std::move(outcomes), draws, truths, p, pricers);
  return sure;
}

ObjectiveRange range_of(const PlannedDeployment& p, std::size_t objective) {
  if (objective < p.ranges.size()) return p.ranges[objective];
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  if (p.candidate.scenario.deployment->fidelity == Fidelity::kIdeal)
    return {Seconds(kUnknown), Seconds(kUnknown), kUnknown};
  const Verdict& v = p.result.verdicts[objective];
  const LogSpread spread = quick_spread(p.candidate.scenario, p.result.metrics, v.objective.statistic());
  return {.low = v.value * std::exp(spread.low), .high = v.value * std::exp(spread.high), .missed = kUnknown};
}

std::optional<HardTruth> HardTruth::of(const PlannedDeployment& planned, const PlanSpec& plan, PricerPool& pricers) {
  const std::vector<TruthDraw> draws = draws_of(plan, planned.candidate.scenario);
  if (draws.empty()) return std::nullopt;
  Sizer sizer(planned, plan, draws, pricers);
  return HardTruth(sizer.truths(), sizer.hard_draw(plan.confidence));
}

std::vector<TruthDraw> draws_of(const PlanSpec& plan, const Scenario& s) {
  if (plan.confidence <= 0 || s.deployment->fidelity == Fidelity::kIdeal || !has_limits(s)) return {};
  return truth_draws(kDraws, s.serving.seed);
}

bool may_be_sure(const Scenario& s, const LoadBounds& bounds, double confidence, const std::vector<TruthDraw>& draws) {
  if (s.goodput > 0 || confidence < 0.5) return true;  // ignored errors would make a rare success likelier
  const auto may = [&](LoadRegime regime) {
    // The host's share is unknown here: each draw lies between none and all.
    const SystemSpread none = planned_spread(*s.deployment, regime, {}),
                       all = planned_spread(*s.deployment, regime, widest_host_spreads());
    const auto holds = std::count_if(draws.begin(), draws.end(), [&](const TruthDraw& draw) {
      const SystemFactors fastest = fastest_factors(none, all, draw);
      return may_hold({.ttft = bounds.ttft * fastest.first_token, .tpot = bounds.tpot * fastest.step}, s.objectives);
    });
    return static_cast<double>(holds) >= confidence * static_cast<double>(draws.size()) - 1e-9;
  };
  return draws.empty() || may(LoadRegime::kLight) || may(LoadRegime::kLoaded);
}

bool make_sure(PlannedDeployment& p, const PlanSpec& plan, const std::vector<TruthDraw>& draws, PricerPool& pricers) {
  const PlannedDeployment nominal = p;
  Sizer sizer(nominal, plan, draws, pricers);
  const int by_harm = sizer.fewest_checked(plan.confidence, first_guess(nominal, plan));
  int step = by_harm;  // a guess: the draws that fail may be others
  if (by_harm < 0) {
    step = sizer.fewest_in_any_order(plan.confidence);
  } else if (plan.goal != PlanGoal::kThroughput) {  // steps of the load are too many
    step = sizer.fewest_down_from(by_harm, plan.confidence);
  }
  if (step < 0) {
    p.probability = sizer.probability(0);  // by harm: a guess, which orders refused rows
    return false;
  }
  if (step > 0) {
    p = sizer.at(step);
    forecast(p, pricers);
  }
  p.probability = step == by_harm ? sizer.probability(step) : sizer.share_held(step);
  return within_power(p, plan);
}

void judge_ranking(PlanResult& out, const PlanSpec& plan, PricerPool& pricers) {
  std::vector<PlannedDeployment>& ranked = out.ranked;
  if (ranked.empty()) return;
  const std::vector<TruthDraw> draws = draws_of(plan, ranked.front().candidate.scenario);
  if (draws.empty()) return;
  out.draws = static_cast<int>(draws.size());
  while (true) {
    std::vector<std::size_t> rows;  // top rows that are not judged yet; independent, so they run in parallel
    for (std::size_t i = 0; i < std::min(kJudged, ranked.size()); ++i) {
      if (!ranked[i].probability) rows.push_back(i), out.forecasts.push_back(ranked[i]);
    }
    if (rows.empty()) break;
    std::vector<char> sure(ranked.size(), 1);
    parallel_for_each_index(
        rows.size(), [&](std::size_t k) { sure[rows[k]] = make_sure(ranked[rows[k]], plan, draws, pricers) ? 1 : 0; });
    for (std::size_t i = ranked.size(); i-- > 0;) {
      if (sure[i]) continue;
      if (!out.nearest || *ranked[i].probability > out.nearest->probability.value_or(0)) out.nearest = ranked[i];
      ranked.erase(ranked.begin() + static_cast<std::ptrdiff_t>(i));
    }
    std::stable_sort(ranked.begin(), ranked.end(),
                     [&](const auto& a, const auto& b) { return better(a, b, plan.goal); });
  }
  if (!ranked.empty()) {
    out.nearest.reset();
  } else if (out.nearest) {
    const PlannedDeployment refused = *out.nearest;
    out.nearest->probability = Sizer(refused, plan, draws, pricers).share_held(0);
  }
}

namespace {

/// The fleet that the forecast alone required; null if the row was not judged.
const PlannedDeployment* forecast_of(const PlanResult& out, const PlannedDeployment& p) {
  const auto from = std::find_if(out.forecasts.begin(), out.forecasts.end(),
                                 [&](const PlannedDeployment& f) { return f.candidate.index == p.candidate.index; });
  return p.probability && from != out.forecasts.end() ? &*from : nullptr;
}

/// Removes replicas while enough draws still hold.
void give_up_replicas(PlannedDeployment& p, const PlannedDeployment& nominal, const PlanSpec& plan,
                      PricerPool& pricers) {
  const Sizer sizer(nominal, plan, {}, pricers);
  for (int step = sizer.step_of(p) - 1; step >= 0; --step) {
    PlannedDeployment fewer = sizer.at(step);
    forecast(fewer, pricers);
    fewer.probability = 0;
    if (!simulate_draws_if_sure(fewer, plan, pricers) || !within_power(fewer, plan)) return;
    p = std::move(fewer);
  }
}

}  // namespace

namespace {

/// The highest load that the whole fleet holds, if one replica represented it: a router balances what a random share of
/// the load does not. Unchanged if that is no higher.
void load_whole_fleet(PlannedDeployment& p, const PlanSpec& plan, PricerPool& pricers) {
  constexpr int kMostSimulated = 64;
  const LoadKind kind = load_kind(*p.candidate.scenario.workload);
  const Fleet fleet{.replicas = std::min(p.replicas, kMostSimulated)};
  if ((kind != LoadKind::kRate && kind != LoadKind::kUsers) || p.candidate.disaggregated() ||
      p.tested.replicas >= fleet.replicas)
    return;
  const double load = p.tested_load() * fleet.replicas / p.tested.replicas;
  std::vector<TriedLoad> tried;
  HeldLoad held =
      held_load(p.candidate.scenario, {.low = load, .high = 1.5 * load, .only_met = true}, fleet, pricers, tried);
  if (held.load <= load) return;
  PlannedDeployment whole = p;
  whole.tested = fleet;
  whole.load = held.load * p.replicas / fleet.replicas;
  whole.held = held.load;
  whole.result = std::move(held.result);
  if (within_power(whole, plan)) p = std::move(whole);
}

/// The same for the winner of a throughput search, then confirmed or made sure again.
void load_whole_winner(PlanResult& result, const PlanSpec& plan, PricerPool& pricers) {
  if (plan.goal != PlanGoal::kThroughput || result.ranked.empty()) return;
  PlannedDeployment& winner = result.ranked.front();
  const auto from = std::find_if(result.forecasts.begin(), result.forecasts.end(), [&](const PlannedDeployment& f) {
    return f.candidate.index == winner.candidate.index;
  });
  const bool judged = winner.probability && from != result.forecasts.end();
  PlannedDeployment whole = judged ? *from : winner;
  load_whole_fleet(whole, plan, pricers);
  if (whole.tested.replicas == winner.tested.replicas) return;
  const PlannedDeployment nominal = whole;
  const bool holds = judged ? make_sure(whole, plan, draws_of(plan, whole.candidate.scenario), pricers)
                            : confirm(whole, plan, pricers);
  if (!holds || whole.load <= winner.load) return;
  winner = std::move(whole);
  if (judged) *from = nominal;
}

}  // namespace

bool size_row_by_draws(PlannedDeployment& p, int replicas, const PlanSpec& plan, PricerPool& pricers) {
  if (replicas > p.replicas) {
    PlannedDeployment larger = p;
    larger.replicas = replicas;
    larger.spare = spares_of(plan, p.candidate, replicas);
    if (!p.candidate.affords(larger.fleet(), larger.spare)) return false;
    if (p.tested.replicas == p.replicas)
      larger.tested = larger.fleet(), larger.held = 0;  // not searched for this fleet
    larger.in_all_draws = false;
    forecast(larger, pricers);
    larger.confirmed = larger.result.met;
    if (!within_power(larger, plan)) return false;
    p = std::move(larger);
  }
  if (grow_until_sure(p, plan, pricers)) return true;
  if (!p.in_all_draws) simulate_all_draws(p, plan, pricers);  // it is shown unchanged
  return false;
}

bool grow_until_sure(PlannedDeployment& p, const PlanSpec& plan, PricerPool& pricers) {
  constexpr int kMostSteps = 32;
  if (!p.probability || (p.in_all_draws && *p.probability >= plan.confidence - 1e-9)) return true;
  if (!p.in_all_draws && simulate_draws_if_sure(p, plan, pricers)) return true;
  const PlannedDeployment from = p;
  const Sizer sizer(from, plan, {}, pricers);
  for (int step = 1; step <= kMostSteps && sizer.possible(step); ++step) {
    PlannedDeployment larger = sizer.at(step);
    if (larger.gpus() == p.gpus() && larger.load == p.load) break;
    larger.in_all_draws = false;
    forecast(larger, pricers);
    if (!within_power(larger, plan)) break;
    p = std::move(larger);
    if (simulate_draws_if_sure(p, plan, pricers)) return true;
  }
  return false;
}

std::string unsure_gpu_note(const std::string& gpu, double confidence) {
  return fmt::format("no row of {}: on the GPUs allowed it meets all objectives in fewer than {:.3g} % of the draws",
                     gpu, 100 * confidence);
}

namespace {

std::set<std::string> gpus_of(const std::vector<PlannedDeployment>& ranked) {
  std::set<std::string> out;
  for (const PlannedDeployment& p : ranked) {
    out.insert(p.candidate.scenario.deployment->gpu.name);
    if (p.candidate.disaggregated()) out.insert(p.candidate.prefill().gpu.name);
  }
  return out;
}

}  // namespace

void size_winner_by_draws(PlanResult& result, const PlanSpec& plan, PricerPool& pricers) {
  constexpr int kMostRounds = 32;
  std::vector<PlannedDeployment>& ranked = result.ranked;
  const std::set<std::string> gpus = gpus_of(ranked);
  std::vector<PlannedDeployment> unsure;
  std::set<std::uint64_t> loaded;
  for (int round = 0; round < kMostRounds && !ranked.empty(); ++round) {
    if (loaded.insert(ranked.front().candidate.index).second) load_whole_winner(result, plan, pricers);
    PlannedDeployment& p = ranked.front();
    if (!p.probability || p.in_all_draws) break;
    const PlannedDeployment* nominal = forecast_of(result, p);
    if (nominal != nullptr && plan.goal != PlanGoal::kThroughput) give_up_replicas(p, *nominal, plan, pricers);
    if (!grow_until_sure(p, plan, pricers)) {
      unsure.push_back(std::move(p));
      ranked.erase(ranked.begin());
    }
    std::stable_sort(ranked.begin(), ranked.end(),
                     [&](const auto& a, const auto& b) { return better(a, b, plan.goal); });
    judge_ranking(result, plan, pricers);
  }
  result.at_limit = ranked.empty() && !unsure.empty();
  if (result.at_limit) {  // the search allows no surer fleet
    for (PlannedDeployment& p : unsure) {
      if (!p.in_all_draws) simulate_all_draws(p, plan, pricers);
    }
    ranked.push_back(*std::max_element(unsure.begin(), unsure.end(),
                                       [](const auto& a, const auto& b) { return *a.probability < *b.probability; }));
    result.nearest.reset();
  }
  const std::set<std::string> left = gpus_of(ranked);
  for (const std::string& gpu : gpus) {
    if (!left.contains(gpu)) result.notes.push_back(unsure_gpu_note(gpu, plan.confidence));
  }
  if (!ranked.empty()) price_confidence(result, 0, plan, pricers);
}

void price_confidence(PlanResult& out, std::size_t row, const PlanSpec& plan, PricerPool& pricers) {
  PlannedDeployment& p = out.ranked[row];
  const PlannedDeployment* from = forecast_of(out, p);
  if (from == nullptr) return;
  const std::vector<TruthDraw> draws = draws_of(plan, p.candidate.scenario);
  Sizer sizer(*from, plan, draws, pricers);
  const bool by_load = plan.goal == PlanGoal::kThroughput;
  const auto smaller = [&](const PlannedDeployment& a, const PlannedDeployment& b) {
    return by_load ? a.load > b.load : a.gpus() < b.gpus();
  };
  // In all draws, as the probability was worked out; without one, in the order of their harm.
  const int here = p.in_all_draws && !by_load ? sizer.step_of(p) : -1;
  p.safer.clear();
  for (const double confidence : {0.5, 0.8, 0.95}) {
    const bool sure = p.in_all_draws && *p.probability >= confidence - 1e-9,
               asked = confidence >= plan.confidence - 1e-9;
    if (sure && asked) {  // with fewer replicas it is below the plan's confidence
      p.safer.push_back(safer_fleet(p, confidence));
      continue;
    }
    const int step = here < 0 ? sizer.fewest(confidence, first_guess(*from, plan))
                     : sure   ? sizer.fewest_down_from(here, confidence)
                              : sizer.fewest_up_from(here + 1, confidence);
    if (step < 0) continue;
    PlannedDeployment fleet = sizer.at(step);
    // Draws next to each other in the order of harm may hold in the other order: what is surer is never smaller.
    const bool holds = p.probability && *p.probability >= confidence - 1e-9;
    if (asked ? smaller(fleet, p) : holds && smaller(p, fleet)) fleet = p;
    p.safer.push_back(safer_fleet(fleet, confidence));
  }
}

}  // namespace roofcast
