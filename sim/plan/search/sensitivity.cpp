#include "sim/plan/search/sensitivity.h"
#include "sim/plan/parallel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace roofcast {
namespace {

constexpr double kMore = 1.1;

struct Change {
  const char* what;
  void (*apply)(Deployment&);
};
constexpr std::array kChanges{
    Change{"nothing", [](Deployment&) {}},
    Change{"memory bandwidth", [](Deployment& d) { d.gpu.memory_bandwidth *= kMore; }},
    Change{"FLOP/s",
           [](Deployment& d) {
             for (FlopsPerSecond& peak : d.gpu.dense) peak *= kMore;
           }},
    Change{"memory capacity", [](Deployment& d) { d.gpu.memory_capacity *= kMore; }},
    Change{"links",
           [](Deployment& d) {
             for (BytesPerSecond* link :
                  {&d.gpu.node.fabric_bandwidth, &d.gpu.node.pcie_bandwidth, &d.gpu.node.nic_bandwidth})
               *link *= kMore;
           }},
    Change{"host speed", [](Deployment& d) { d.engine.host.scale(1 / kMore); }}};

/// The deployment with a change, and what its steps cost under every seed.
struct Changed {
  std::shared_ptr<const Deployment> deployment, prefill;
  PricerPool pricers;
};

/// Where the search begins.
struct Probe {
  Fleet fleet;
  double near = 0;
  bool of_fleet = false;
  double most() const { return near * 2.0; }  ///< that is tried
};

/// The load that the fleet holds with the change, near that of the plan; tokens/s where the load is given.
/// `range`: where it lies for sure, or is sought.
double throughput_with(const PlannedDeployment& p, const Probe& probe, Changed& changed, std::uint64_t seed,
                       const LoadRange& range) {
  Scenario s = p.candidate.scenario;
  s.serving.seed += seed;
  s.deployment = changed.deployment;
  if (s.serving.disaggregation) s.serving.disaggregation->prefill = changed.prefill;
  PricerPool& pricers = changed.pricers;
  std::vector<TriedLoad> tried;
  if (load_kind(*s.workload) == LoadKind::kWhole) {
    const LoadResult r =
        test_load(s, {.load = 1, .fleet = p.tested, .seed = s.serving.seed, .more_requests = 1}, pricers);
    return r.metrics.output_tokens / std::max(r.metrics.duration.base(), 1e-12);
  }
  return held_load(s, range, probe.fleet, pricers, tried).load;
}

/// The pace that is about what the fleet holds: a trace was simulated at its own only, which may be far from it.
double pace_near(const PlannedDeployment& p) {
  const Scenario& s = p.candidate.scenario;
  double pace = p.load;
  PricerPool pricers;
  for (int i = 0; i < 10; ++i, pace *= 2) {
    const LoadTest twice{.load = 2 * pace, .fleet = p.fleet(), .seed = s.serving.seed, .more_requests = 1};
    if (!test_load(s, twice, pricers).met) break;
  }
  return pace;
}

/// One replica with its share of the load, or the fleet where the two cannot be told from each other, and where a
/// share alone is too much for one: the router spares each of many the worst of a burst.
Probe probe_of(const PlannedDeployment& p) {
  const Scenario& s = p.candidate.scenario;
  const LoadKind kind = load_kind(*s.workload);
  if (kind == LoadKind::kPace) return {p.fleet(), pace_near(p), true};
  if (p.candidate.disaggregated()) return {p.fleet(), p.held > 0 ? p.held : p.load, true};
  const Probe one{Fleet{}, p.held > 0 ? p.held : p.load / p.replicas, false};
  if (kind == LoadKind::kWhole || p.replicas == 1) return one;
  PricerPool pricers;
  const double least = kind == LoadKind::kUsers ? std::max(1.0, std::floor(one.near * 0.8)) : one.near * 0.8;
  const LoadTest test{.load = least, .fleet = one.fleet, .seed = s.serving.seed, .more_requests = 1};
  if (test_load(s, test, pricers).met) return one;
  return p.tested.replicas > 1 ? Probe{p.tested, p.tested_load(), true} : Probe{p.fleet(), p.load, true};
}

/// Without objectives, patience or a limit of the queue any number of users is answered in the end.
bool takes_any_load(const Scenario& s) {
  return load_kind(*s.workload) == LoadKind::kUsers && s.objectives.empty() && s.goodput <= 0 &&
         s.workload->patience.endless() && s.serving.max_queue == 0;
}

constexpr std::size_t kSeeds = 2;
using BySeed = std::array<double, kSeeds>;

/// Pairs under one seed each. Nothing where some seed holds no load at all.
/// `step` is the least change that can be seen: of a load in whole users.
std::optional<Sensitivity> mean_change(const char* what, const BySeed& before, const BySeed& after, double step) {
  double sum = 0, squares = 0;
  for (std::size_t k = 0; k < kSeeds; ++k) {
    if (before[k] <= 0 || after[k] <= 0) return std::nullopt;
    const double change = after[k] / before[k] - 1.0;
    sum += change, squares += change * change;
  }
  const double mean = sum / kSeeds;
  const double error = std::sqrt(std::max(0.0, squares / kSeeds - mean * mean) / (kSeeds - 1));
  return Sensitivity{what, std::max(0.0, mean), std::max({error, -mean, step / before.front()})};
}

}  // namespace

std::shared_ptr<const Deployment> perturbed(const Deployment& deployment, void (*change)(Deployment&)) {
  auto d = std::make_shared<Deployment>(deployment);
  change(*d);
  d->memory = plan_memory(*d);
  return d;
}

Sensitivities sensitivities(const PlannedDeployment& planned) {
  constexpr int kDoublings = 10;
  if (takes_any_load(planned.candidate.scenario)) return {};
  std::array<std::array<double, kSeeds>, kChanges.size()> throughput{};
  Probe probe = probe_of(planned);
  const LoadKind kind = load_kind(*planned.candidate.scenario.workload);
  const bool whole = kind == LoadKind::kWhole;
  // The most that was tried says nothing of what limits the fleet: every change would seem to do nothing.
  const auto capped = [&] {
    const double most = kind == LoadKind::kUsers ? std::floor(probe.most()) : probe.most();
    return !whole && throughput[0][0] >= most * (1 - 1e-9);
  };
  std::array<Changed, kChanges.size()> changed;
  for (std::size_t i = 0; i < kChanges.size(); ++i) {
    const Candidate& candidate = planned.candidate;
    changed[i].deployment = perturbed(*candidate.scenario.deployment, kChanges[i].apply);
    if (candidate.disaggregated()) changed[i].prefill = perturbed(candidate.prefill(), kChanges[i].apply);
  }
  const auto hold = [&](std::size_t change, std::size_t seed) {
    // Ten percent more of one thing is worth at most about that.
    const double held = change > 0 ? throughput[0][seed] : 0;
    const LoadRange range{.low = held > 0 ? held * 0.99 : probe.near * 0.8,
                          .high = held > 0 ? held * 1.13 : probe.most(),
                          .tolerance = 0.004};
    throughput[change][seed] = throughput_with(planned, probe, changed[change], seed, range);
  };
  hold(0, 0);
  const int doublings = kind == LoadKind::kPace ? 0 : kDoublings;  // pace_near() went as far
  for (int i = 0; i < doublings && capped(); ++i) {
    probe.near *= 2;
    hold(0, 0);
  }
  if (!capped()) {
    parallel_for_each_index(kSeeds - 1, [&](std::size_t k) { hold(0, k + 1); });
    parallel_for_each_index((kChanges.size() - 1) * kSeeds, [&](std::size_t k) { hold(1 + k / kSeeds, k % kSeeds); });
  }
  Sensitivities out;
  out.of_fleet = probe.of_fleet;
  if (!whole) out.held = throughput[0][0] * (probe.of_fleet ? planned.replicas / (1.0 * probe.fleet.replicas) : 1.0);
  if (capped()) {
    out.held_more = std::exchange(out.held, 0);
    return out;
  }
  const double step = kind == LoadKind::kUsers ? 1 : 0;
  for (std::size_t i = 1; i < kChanges.size(); ++i) {
    if (const auto change = mean_change(kChanges[i].what, throughput[0], throughput[i], step)) out.changes.push_back(*change);
  }
  std::stable_sort(out.changes.begin(), out.changes.end(), [](const Sensitivity& a, const Sensitivity& b) {
    return a.throughput_change > b.throughput_change;
  });
  return out;
}

}  // namespace roofcast
