#include "sim/plan/search/fleet_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "sim/plan/parallel.h"
#include "sim/plan/search/objective_budget.h"
#include "sim/plan/search/risk.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

/// Rows of the ranking that are tried: a smaller replica that costs slightly more at the peak may follow the day
/// better.
constexpr std::size_t kConsidered = 3;
/// Autoscaling targets tried, as multiples of the requests in flight on one replica at the peak.
constexpr std::array kTargets{1.3, 1.1, 0.9, 0.75, 0.6, 0.45, 0.3};

/// Ends a day when its objectives can no longer be met.
class BudgetObserver : public Observer {
 public:
  explicit BudgetObserver(std::optional<ObjectiveBudgets> budgets) : budgets_(std::move(budgets)) {}
  void on_request(const RequestRecord& r) override {
    if (budgets_) budgets_->add(r);
  }
  bool enough() const override { return budgets_ && budgets_->spent(); }

 private:
  std::optional<ObjectiveBudgets> budgets_;  ///< empty: never stops early
};

/// How many requests of a day may miss; empty if the objectives do not tell.
std::optional<ObjectiveBudgets> budgets_of(const Scenario& s, const WorkloadSpec& day, double requests) {
  if (s.objectives.empty() || s.goodput > 0 || !day.clients.empty()) return std::nullopt;
  // Eight standard deviations above the expected number, so that a miss is certain.
  const double deviation = std::max(1.0, day.arrivals.cv) * std::sqrt(requests);
  return ObjectiveBudgets(s.objectives, requests + 8 * deviation, true);
}

/// Requests and replicas by slice of the day.
class DayObserver final : public BudgetObserver {
 public:
  DayObserver(std::vector<FleetSlice>& slices, Seconds length, std::optional<ObjectiveBudgets> budgets)
      : BudgetObserver(std::move(budgets)), slices_(slices), length_(length) {}
  void on_request(const RequestRecord& r) override {
    BudgetObserver::on_request(r);
    FleetSlice& slice = slices_[slice_of(r.arrival)];
    ++slice.completed;
    slice.ttft_ms.add(r.ttft.in(kMillisecond));
  }
  void on_fleet(const FleetRecord& r) override {
    pass_to(r.at);
    last_ = r;
    FleetSlice& slice = slices_[slice_of(r.at)];
    if (r.at < length_) slice.most = std::max(slice.most, r.serving);
  }
  void finish() { pass_to(length_); }

 private:
  std::size_t slice_of(Seconds at) const {
    const double share = at / length_ * static_cast<double>(slices_.size());
    return std::min(static_cast<std::size_t>(std::max(share, 0.0)), slices_.size() - 1);
  }
  /// Accounts for the unchanged fleet up to `at`.
  void pass_to(Seconds at) {
    for (FleetSlice& s : slices_) {
      const double seconds = (std::min(at, s.to) - std::max(last_.at, s.from)).base();
      if (seconds <= 0) continue;
      s.mean += (last_.serving + last_.starting) * seconds / (s.to - s.from).base();
      s.hours[last_.serving + last_.starting] += seconds / 3600;
      s.most = std::max(s.most, last_.serving);
    }
  }
  std::vector<FleetSlice>& slices_;
  Seconds length_;
  FleetRecord last_;
};

/// Before a slice of a trace, uncounted requests are sent for this long to fill caches and batches.
constexpr Seconds kLead{300};
constexpr double kHeavierLead = 1.1;

/// The requests of one slice after those of its lead. A lead with a higher load is dropped, because the replicas of the
/// previous slice serve it.
WorkloadSpec played_alone(const DiurnalPlan& plan, const FleetSlice& slice, std::uint64_t seed) {
  WorkloadSpec w = plan.day;
  Seconds lead = std::min(slice.from, kLead);
  w.start = plan.day.start + slice.from - lead;
  w.requests = 0;
  w.duration = lead;
  if (lead > Seconds(0)) {
    w.warmup_requests = extent_of(w, seed).requests;
    if (static_cast<double>(w.warmup_requests) > kHeavierLead * slice.rate * lead.base()) {
      w.start += lead;
      w.warmup_requests = 0;
      lead = Seconds(0);
    }
  }
  w.duration = slice.to - slice.from + lead;
  return w;
}

/// Finds the fewest replicas that hold a slice, starting from a guess: with the search's seed, then with another one as
/// for the search's winner, and in a draw as hard as the plan's confidence requires.
class Holder {
 public:
  Holder(const PlannedDeployment& p, const DiurnalPlan& plan, const std::optional<HardTruth>& truth,
         PricerPool& pricers)
      : planned_(p), plan_(plan), truth_(truth), pricers_(pricers) {
    if (plan.recorded) {
      held_ = plan.highest / p.replicas;
    } else {
      held_ = p.held > 0 ? p.held : p.load / p.replicas;
    }
  }
  int replicas(const FleetSlice& slice) {
    if (slice.rate <= 0) return 0;
    const int most = plan_.of_busiest ? planned_.candidate.most_replicas(planned_.spare) : planned_.replicas;
    int n = std::clamp(static_cast<int>(std::ceil(slice.rate / held_ - 1e-9)), 1, most);
    if (holds(slice, n)) {
      while (n > 1 && holds(slice, n - 1)) --n;
    } else {
      while (n < most && !holds(slice, ++n)) {
      }
    }
    return n;
  }

 private:
  bool holds(const FleetSlice& slice, int replicas) {
    return holds_by_forecast(slice, replicas) && (!truth_ || holds_in_truth(slice, replicas));
  }
  bool holds_by_forecast(const FleetSlice& slice, int replicas) {
    const Scenario& s = planned_.candidate.scenario;
    const std::uint64_t seed = s.serving.seed;
    if (!plan_.recorded) return met(s, slice.rate, replicas, seed, 1) && met(s, slice.rate, replicas, seed + 1, 4);
    return plays(slice, replicas, seed) && (plan_.day.clients.empty() || plays(slice, replicas, seed + 1));
  }
  bool holds_in_truth(const FleetSlice& slice, int replicas) {
    Scenario s = truth_->scenario();
    const std::uint64_t seed = s.serving.seed + (plan_.recorded ? 0 : 1);
    if (plan_.recorded) s.workload = played_alone(plan_, slice, seed);
    const LoadTest test{.load = (plan_.recorded ? 1 : slice.rate) * truth_->load_factor(),
                        .fleet = {.replicas = replicas},
                        .seed = seed,
                        .more_requests = 1,
                        .pricer = truth_->pricers(pricers_)};
    return test_load(s, test, pricers_).held(s);
  }
  bool plays(const FleetSlice& slice, int replicas, std::uint64_t seed) {
    Scenario s = planned_.candidate.scenario;
    s.workload = played_alone(plan_, slice, seed);
    return met(s, 1, replicas, seed, 1);
  }
  bool met(const Scenario& s, double load, int replicas, std::uint64_t seed, double more) {
    const LoadTest test{.load = load, .fleet = {.replicas = replicas}, .seed = seed, .more_requests = more};
    return test_load(s, test, pricers_).met;
  }

  const PlannedDeployment& planned_;
  const DiurnalPlan& plan_;
  const std::optional<HardTruth>& truth_;
  PricerPool& pricers_;
  double held_;
};

void schedule_slices(const PlannedDeployment& p, const DiurnalPlan& plan, const std::optional<HardTruth>& truth,
                     PricerPool& pricers, FleetPlan& out) {
  Holder holder(p, plan, truth, pricers);
  std::map<double, int> known;  // slices of a profile with the same rate are equal
  for (FleetSlice& s : out.slices) {
    const auto [at, fresh] = known.try_emplace(s.rate, 0);
    if (fresh || plan.recorded) at->second = holder.replicas(s);
    s.needed = at->second;
  }
}

/// The cost of a day with this many replicas plus the spares.
FleetDay day_of(const PlannedDeployment& p, double replica_hours, std::vector<FleetSpan> spans) {
  double hours = 0;
  for (FleetSpan& span : spans) span.replicas += p.spare, hours += span.hours;
  const Bill bill = p.candidate.bill(spans);
  return {.replica_hours = replica_hours + p.spare * hours,
          .usd = bill.usd(),
          .price = price_line(*p.candidate.scenario.deployment, bill.decode.quote)};
}

/// By schedule: each replica starts one cold start before it is needed.
FleetDay scheduled_day(const PlannedDeployment& p, const FleetPlan& plan) {
  double replica_hours = 0;
  std::map<int, double> by_size;
  for (std::size_t i = 0; i < plan.slices.size(); ++i) {
    const FleetSlice& s = plan.slices[i];
    int before = plan.slices[(i + plan.slices.size() - 1) % plan.slices.size()].needed;
    if (i == 0 && plan.recorded) before = s.needed;  // the time before a trace is not recorded
    const double hours = (s.to - s.from).in(kHour), starting = plan.cold_start.in(kHour);
    const int more = std::max(0, s.needed - before);
    replica_hours += s.needed * hours + more * starting;
    by_size[s.needed] += hours;
    if (more > 0) by_size[s.needed] += starting, by_size[before] -= starting;  // the previous slice ends with them
  }
  std::vector<FleetSpan> spans;
  for (const auto& [replicas, hours] : by_size) spans.push_back({.replicas = replicas, .hours = hours});
  return day_of(p, replica_hours, std::move(spans));
}

/// Whether the autoscaled day meets its objectives in a hard draw, if the plan asks for confidence.
bool day_holds(const PlannedDeployment& p, const DiurnalPlan& plan, const std::optional<HardTruth>& truth,
               PricerPool& pricers, const FleetPlan& out) {
  if (!out.met || !truth) return out.met;
  Scenario s = truth->scenario();
  ServingOptions options = s.serving;
  options.replicas = std::max(out.slices.front().needed, out.scaling.min);
  options.fleet.autoscaling = out.scaling;
  options.pricer = truth->pricers(pricers);
  WorkloadSpec day = plan.day;
  speed_up(day, truth->load_factor());
  BudgetObserver observer(budgets_of(s, day, plan.mean * out.length.base() * truth->load_factor()));
  const Judgement judgement = judge(s, simulate(p.candidate.scenario.deployment, day, options, &observer));
  return !observer.enough() && judgement.within;
}

/// Simulates the day with the autoscaler as far as the budgets allow; returns whether it reached the end.
bool play_day(const PlannedDeployment& p, const DiurnalPlan& plan, std::optional<ObjectiveBudgets> budgets,
              PricerPool& pricers, FleetPlan& out) {
  const Scenario& s = p.candidate.scenario;
  ServingOptions options = s.serving;
  options.replicas = std::max(out.slices.front().needed, out.scaling.min);
  options.fleet.autoscaling = out.scaling;
  options.pricer = pricers.factory();
  for (FleetSlice& slice : out.slices)
    slice.mean = 0, slice.hours.clear(), slice.most = 0, slice.completed = 0, slice.ttft_ms = {};
  DayObserver observer(out.slices, out.length, std::move(budgets));
  out.metrics = simulate(s.deployment, plan.day, options, &observer);
  observer.finish();
  const Judgement judgement = judge(s, out.metrics);
  out.verdicts = judgement.verdicts;
  out.goodput = judgement.goodput;
  out.worst_ratio = judgement.worst_ratio;
  out.met = judgement.within && !observer.enough();
  return !observer.enough();
}

/// Requests in flight on one replica at the planned load (for a trace: in its busiest slice), by Little's law.
double in_flight(const PlannedDeployment& p, const DiurnalPlan& plan) {
  const double rate = plan.recorded ? plan.highest : p.load;
  return std::max(1.0, rate / p.replicas * p.result.metrics.e2el_ms.mean() / 1e3);
}

/// The scenario's own autoscaling if it has one; else a target on requests in flight, lowered until the day holds.
void scale_day(const PlannedDeployment& p, const DiurnalPlan& plan, const std::optional<HardTruth>& truth,
               PricerPool& pricers, FleetPlan& out) {
  if (const auto& own = p.candidate.scenario.serving.fleet.autoscaling) {
    out.scaling = *own;
    (void)play_day(p, plan, std::nullopt, pricers, out);
    out.met = day_holds(p, plan, truth, pricers, out);
    return;
  }
  const std::optional<ObjectiveBudgets> budgets =
      budgets_of(p.candidate.scenario, plan.day, plan.mean * plan.length.base());
  bool whole = false;
  int fewest = p.replicas;
  for (const FleetSlice& s : out.slices) fewest = std::min(fewest, s.needed);
  for (const double share : kTargets) {
    out.scaling = {.min = std::max(1, fewest),
                   .max = p.candidate.most_replicas(p.spare),
                   .policy = ScalingPolicy::kConcurrency,
                   .target = std::max(1.0, std::floor(share * in_flight(p, plan)))};
    whole = play_day(p, plan, budgets, pricers, out);
    out.met = day_holds(p, plan, truth, pricers, out);
    if (out.met) return;
  }
  if (!whole) (void)play_day(p, plan, std::nullopt, pricers, out);  // the nearest is shown
}

/// From the first hour to the last, whether or not they have requests.
FleetDay scaled_day(const PlannedDeployment& p, std::vector<FleetSlice>& slices) {
  double replica_hours = 0;
  const auto spans_of = [&](const FleetSlice& s) {
    std::vector<FleetSpan> spans;
    for (const auto& [replicas, hours] : s.hours) spans.push_back({.replicas = replicas + p.spare, .hours = hours});
    return spans;
  };
  std::vector<FleetSpan> all;
  for (const FleetSlice& s : slices) {
    replica_hours += s.mean * (s.to - s.from).in(kHour) + p.spare * (s.to - s.from).in(kHour);
    const std::vector<FleetSpan> own = spans_of(s);
    all.insert(all.end(), own.begin(), own.end());
  }
  const Deployment& d = *p.candidate.scenario.deployment;
  const Bill bill = p.candidate.bill(all);
  for (FleetSlice& s : slices) s.usd = bill_at(d, bill.decode.quote, nullptr, nullptr, spans_of(s)).usd();
  return {.replica_hours = replica_hours, .usd = bill.usd(), .price = price_line(d, bill.decode.quote)};
}

std::string words_of(const Candidate& c) {
  return fmt::format("replicas of {} x {} ({}), {}", c.gpus(), c.gpu, layout_of(c.scenario.deployment->sharding),
                     c.precision);
}

/// A fixed fleet for the whole day.
void fix_fleet(const PlannedDeployment& p, int replicas, FleetPlan& out) {
  const double hours = out.length.in(kHour);
  out.static_replicas = replicas;
  out.fixed = day_of(p, replicas * hours, {{.replicas = replicas, .hours = hours}});
}

FleetPlan plan_day(const PlannedDeployment& p, const PlanSpec& asked, const DiurnalPlan& plan, PricerPool& pricers) {
  const Deployment& d = *p.candidate.scenario.deployment;
  FleetPlan out;
  out.candidate = p.candidate.index;
  out.deployment = words_of(p.candidate);
  out.gpus_a_replica = d.sharding.gpus();
  out.cold_start = p.candidate.scenario.serving.fleet.cold_start;
  out.length = plan.length;
  out.recorded = plan.recorded;
  out.of_busiest = plan.of_busiest;
  out.slices = plan.slices;
  const std::optional<HardTruth> truth = HardTruth::of(p, asked, pricers);
  out.confidence = truth ? asked.confidence : 0;
  schedule_slices(p, plan, truth, pricers, out);
  int most = p.replicas;  // in a long trace the slice with the most tokens may not be the hardest
  for (const FleetSlice& s : out.slices) most = std::max(most, s.needed);
  fix_fleet(p, most, out);
  out.scheduled = scheduled_day(p, out);
  scale_day(p, plan, truth, pricers, out);
  out.scaled = scaled_day(p, out.slices);
  return out;
}

}  // namespace

double FleetPlan::cheapest_usd() const {
  const double by_need = std::min(fixed.usd, scheduled.usd);
  return met ? std::min(by_need, scaled.usd) : by_need;
}

namespace {

/// Among the days within one replica in one slice of the cheapest, the one whose fleet costs least per hour, because
/// such differences are chance.
std::size_t best_day(const std::vector<FleetPlan>& days, const std::vector<char>& sure) {
  const auto nearer = [&](std::size_t a, std::size_t b) {
    if (sure[a] != sure[b]) return sure[a] > sure[b];
    if (days[a].met != days[b].met) return days[a].met;
    return days[a].met ? days[a].cheapest_usd() < days[b].cheapest_usd() : days[a].worst_ratio < days[b].worst_ratio;
  };
  std::size_t best = 0;
  for (std::size_t i = 1; i < days.size(); ++i) best = nearer(i, best) ? i : best;
  if (!days[best].met) return best;
  const auto slice_usd = [&](const FleetPlan& day) {
    return day.fixed.usd / (day.static_replicas * static_cast<double>(day.slices.size()));
  };
  const std::size_t cheapest = best;
  for (std::size_t i = 0; i < days.size(); ++i) {
    const double noise = std::max(slice_usd(days[i]), slice_usd(days[cheapest]));
    const bool tie = days[i].met && sure[i] == sure[cheapest] &&
                     days[i].cheapest_usd() <= days[cheapest].cheapest_usd() + noise * (1 + 1e-9);
    if (tie && days[i].fixed.usd < days[best].fixed.usd) best = i;
  }
  return best;
}

}  // namespace

FleetPlan plan_fleet(const PlanSpec& asked, const DiurnalPlan& plan, PlanResult& result) {
  SIM_CHECK(!result.ranked.empty(), "a fleet is planned of deployments that hold the peak");
  PricerPool& pricers = *result.pricers;
  std::vector<FleetPlan> days(std::min(kConsidered, result.ranked.size()));
  parallel_for_each_index(days.size(),
                          [&](std::size_t i) { days[i] = plan_day(result.ranked[i], asked, plan, pricers); });
  std::vector<char> sure(days.size(), 1), settled(days.size(), 0);
  std::size_t best = best_day(days, sure);
  for (; !settled[best]; best = best_day(days, sure)) {  // the fixed fleet is the one that is rented
    PlannedDeployment& p = result.ranked[best];
    settled[best] = 1;
    bool holds = true;
    for (int before = 0; holds && before != p.replicas;) {  // a day is of the row that is shown with it
      before = p.replicas;
      holds = size_row_by_draws(p, days[best].static_replicas, asked, pricers);
      if (p.replicas != before) days[best] = plan_day(p, asked, plan, pricers);
    }
    sure[best] = holds ? 1 : 0;
    fix_fleet(p, p.replicas, days[best]);
  }
  result.at_limit = !sure[best];
  std::stable_sort(result.ranked.begin(), result.ranked.end(),
                   [&](const auto& a, const auto& b) { return better(a, b, asked.goal); });
  return days[best];
}

}  // namespace roofcast
