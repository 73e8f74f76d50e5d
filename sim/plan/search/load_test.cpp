#include "sim/plan/search/load_test.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "sim/plan/search/objective_budget.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

constexpr Seconds kLongestTest{50 * 86400.0};  // half of what a simulation can last

/// Records waits in the order in which requests ended, to detect a growing queue; and whether objectives can still be
/// met.
class TestObserver final : public Observer {
 public:
  explicit TestObserver(std::optional<ObjectiveBudgets> budgets) : budgets_(std::move(budgets)) {}

  void on_request(const RequestRecord& r) override {
    waits_.emplace_back((r.arrival - r.held).base(), (r.held + r.queue).base());
    if (budgets_) budgets_->add(r);
  }
  bool enough() const override { return budgets_ && budgets_->spent(); }

  /// Compares the mean wait of the last third of the arrivals with the first third's: the wait in a stable queue
  /// fluctuates, in an overloaded one it grows. If later requests overtake earlier ones, waits may stay equal; so the
  /// starts are also sorted, as if first come were first served.
  bool grows(Seconds tolerated) {
    if (waits_.size() < 60) return false;
    std::sort(waits_.begin(), waits_.end());
    const std::size_t third = waits_.size() / 3;
    std::vector<double> starts;
    starts.reserve(waits_.size());
    for (const auto& [arrival, wait] : waits_) starts.push_back(arrival + wait);
    std::sort(starts.begin(), starts.end());
    const auto longer = [&](const auto& wait) {
      const auto mean = [&](std::size_t from) {
        double sum = 0;
        for (std::size_t i = from; i < from + third; ++i) sum += wait(i);
        return sum / static_cast<double>(third);
      };
      return mean(waits_.size() - third) > 2.0 * mean(0) + tolerated.base();
    };
    return longer([&](std::size_t i) { return waits_[i].second; }) ||
           longer([&](std::size_t i) { return starts[i] - waits_[i].first; });
  }

 private:
  std::optional<ObjectiveBudgets> budgets_;  ///< empty: never stops early
  std::vector<std::pair<double, double>> waits_;
};

/// Requests in flight by Little's law, with the E2E latency of a full machine; at most what the machine holds.
double requests_in_flight(const Scenario& s, const LoadTest& test, StepPricer& pricer) {
  const Deployment& d = *s.deployment;
  const double prompt = s.workload->prompt_tokens.mean(), output = s.workload->output_tokens.mean();
  const double room =
      std::max(1.0, std::min<double>(d.max_sequences(), d.memory.max_batch(prompt + output, d.engine.block_size) *
                                                            d.sharding.attention_dp));
  const int batch = static_cast<int>(std::min(room, 65536.0));
  const double rate = test.load / test.fleet.replicas, context = prompt + output / 2;
  const double more = s.serving.disaggregation ? 1.1 : 1.5;  // prefill chunks make steps longer
  double flight = 1;
  for (int i = 0; i < 4; ++i) {  // fixed-point iteration: batch and step time depend on each other
    const double step = pricer
                            .cost({.decodes = std::min(batch, static_cast<int>(std::ceil(flight))),
                                   .decode_context = context * flight,
                                   .prefills = {}})
                            .time.base();
    flight = std::clamp(rate * output * step * more, 1.0, room);
  }
  return flight * test.fleet.replicas;
}

/// A recorded trace cannot provide more requests; a mix of clients can be drawn for longer.
void set_pace(WorkloadSpec& w, const LoadTest& test) {
  speed_up(w, test.load);
  if (w.clients.empty()) {
    if (!w.duration && w.requests == 0)
      w.arrivals.loop *= std::max(1, static_cast<int>(std::lround(test.more_requests)));
    return;
  }
  w.requests = static_cast<std::int64_t>(std::ceil(static_cast<double>(w.requests) * test.more_requests));
  // The same number of requests at every pace, and for a profile the same ones.
  w.start = w.start / test.load;
  if (w.duration) w.duration = *w.duration * (test.more_requests / test.load);
  for (WorkloadSpec& client : w.clients) client.arrivals.profile_period = client.arrivals.profile_period / test.load;
}

WorkloadSpec workload_at(const Scenario& s, const LoadTest& test, StepPricer& pricer) {
  WorkloadSpec w = *s.workload;
  const double needed = static_cast<double>(requests_needed(s.objectives, s.goodput)) * test.more_requests;
  switch (load_kind(w)) {
    case LoadKind::kRate: {
      const double flight = requests_in_flight(s, test, pricer);
      w.arrivals.rate = PerSecond(test.load);
      w.arrivals.profile.clear();
      w.duration.reset();
      w.warmup_requests = static_cast<std::int64_t>(std::ceil(1.5 * flight));
      w.requests = static_cast<std::int64_t>(std::ceil(std::max(needed, 3.0 * flight)));
      // At so low a rate requests never overlap; a higher rate keeps the run short without changing that.
      w.arrivals.rate = std::max(w.arrivals.rate,
                                 PerSecond(static_cast<double>(w.requests + w.warmup_requests) / kLongestTest.base()));
      break;
    }
    case LoadKind::kUsers:
      w.arrivals.concurrency = std::max(1, static_cast<int>(std::lround(test.load)));
      w.duration.reset();
      w.requests = static_cast<std::int64_t>(std::ceil(std::max(needed, 10.0 * w.arrivals.concurrency)));
      w.warmup_requests = std::max<std::int64_t>(w.warmup_requests, 4LL * w.arrivals.concurrency);
      w.pause_after_warmup = false;  // users of a service do not all start at once
      break;
    case LoadKind::kPace:
      set_pace(w, test);
      break;
    case LoadKind::kWhole:
      break;
  }
  return w;
}

Seconds tolerated_drift(const Scenario& s) {
  Seconds least(0.5);
  for (const Objective& o : s.objectives) {
    if (o.metric == LatencyMetric::kTtft || o.metric == LatencyMetric::kE2el) least = std::min(least, o.limit * 0.1);
  }
  return least;
}

}  // namespace

LoadKind load_kind(const WorkloadSpec& w) {
  switch (w.arrivals.process) {
    case ArrivalSpec::Process::kPoisson:
    case ArrivalSpec::Process::kGamma:
    case ArrivalSpec::Process::kConstant:
      return LoadKind::kRate;
    case ArrivalSpec::Process::kClosedLoop:
      return LoadKind::kUsers;
    case ArrivalSpec::Process::kTrace:
      return LoadKind::kPace;
    case ArrivalSpec::Process::kAllAtOnce:
      break;
  }
  return LoadKind::kWhole;
}

double offered_load(const WorkloadSpec& w) {
  switch (load_kind(w)) {
    case LoadKind::kRate:
      return w.arrivals.rate.base();
    case LoadKind::kUsers:
      return w.arrivals.concurrency;
    case LoadKind::kPace:
    case LoadKind::kWhole:
      break;
  }
  return 1;
}

void speed_up(WorkloadSpec& w, double pace) {
  w.arrivals.rate_scale *= pace;
  w.arrivals.rate = w.arrivals.rate * pace;
  for (WorkloadSpec& client : w.clients) client.arrivals.rate = client.arrivals.rate * pace;
  if (load_kind(w) != LoadKind::kPace || !w.clients.empty()) return;
  w.start = w.start / pace;
  if (w.duration) w.duration = *w.duration / pace;
}

Extent extent_of(const WorkloadSpec& workload, std::uint64_t seed) {
  Extent extent;
  const std::unique_ptr<RequestSource> source = make_source(workload, seed);
  extent.by_client.resize(workload.clients.size());
  for (Request request; source->next(request); ++extent.requests) {
    extent.last = request.arrival;
    if (!extent.by_client.empty()) ++extent.by_client[static_cast<std::size_t>(request.client)];
  }
  return extent;
}

Judgement judge(const Scenario& s, const ServingMetrics& metrics) {
  Judgement out;
  for (const Objective& o : s.objectives) {
    Verdict v{.objective = o, .value = observed(o, metrics), .upper = upper_confidence(o, metrics)};
    v.met = requests_of(o, metrics) > 0 && v.upper <= o.limit;
    out.within = out.within && v.met;
    out.worst_ratio = std::max(out.worst_ratio, v.upper / o.limit);
    out.verdicts.push_back(v);
  }
  const double requests = std::max(1.0, static_cast<double>(metrics.completed + metrics.failed));
  out.within = out.within && serves_enough(metrics);
  out.goodput = metrics.good_requests / requests;
  out.goodput_low = lower_confidence(out.goodput, requests);
  for (std::size_t i = 0; i < metrics.clients.size() && !s.serving.client_objectives.empty(); ++i) {
    const ClientMetrics& c = metrics.clients[i];  // rare kinds must be served as well as the others
    const bool limited = std::any_of(s.objectives.begin(), s.objectives.end(),
                                     [&](const Objective& o) { return o.client == static_cast<int>(i); });
    if (c.ended() <= 0 && !limited) continue;
    const double ended = std::max(1.0, c.ended()), share = c.good_requests / ended;
    out.goodput = std::min(out.goodput, share);
    out.goodput_low = std::min(out.goodput_low, lower_confidence(share, ended));
  }
  if (s.goodput <= 0) return out;
  out.within = metrics.completed > 0 && out.goodput_low >= s.goodput;
  out.worst_ratio = (1 - out.goodput_low) / (1 - s.goodput);
  return out;
}

bool LoadResult::held(const Scenario& s) const {
  if (cut || !stationary || metrics.completed == 0) return false;
  if (s.goodput > 0) return goodput >= s.goodput;
  return serves_enough(metrics) && std::all_of(verdicts.begin(), verdicts.end(), [&](const Verdict& v) {
           return requests_of(v.objective, metrics) > 0 && v.value <= v.objective.limit;
         });
}

LoadResult test_load(const Scenario& s, const LoadTest& test, PricerPool& pricers) {
  ServingOptions options = s.serving;
  options.replicas = test.fleet.replicas;
  options.fleet = {};  // all of them, all the time
  if (options.disaggregation && test.fleet.prefill_replicas > 0)
    options.disaggregation->prefill_replicas = test.fleet.prefill_replicas;
  options.seed = test.seed;
  options.pricer = test.pricer ? test.pricer : pricers.factory();
  const WorkloadSpec workload = workload_at(s, test, *pricers.lend(s.deployment));
  const LoadKind kind = load_kind(*s.workload);
  const bool whole = test.to_the_end || kind == LoadKind::kWhole || s.objectives.empty() || s.goodput > 0;
  std::int64_t requests = whole ? 0 : workload.requests;
  Extent extent;
  if (!whole && kind == LoadKind::kPace) {
    extent = extent_of(workload, test.seed);
    requests = std::max<std::int64_t>(1, extent.requests - workload.warmup_requests);
  }
  std::optional<ObjectiveBudgets> budgets;
  if (!whole) budgets.emplace(s.objectives, static_cast<double>(requests), test.only_met, extent.by_client);
  TestObserver seen(std::move(budgets));
  LoadResult out;
  out.metrics = simulate(s.deployment, workload, options, &seen);
  out.requests = out.metrics.completed;
  out.cut = seen.enough();
  out.stationary = kind != LoadKind::kRate || !seen.grows(tolerated_drift(s));
  static_cast<Judgement&>(out) = judge(s, out.metrics);
  out.met = !out.cut && out.stationary && out.within;
  return out;
}

}  // namespace roofcast
