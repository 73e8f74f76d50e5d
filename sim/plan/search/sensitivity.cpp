#include "sim/plan/search/sensitivity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sim/plan/parallel.h"
#include "sim/plan/speculation.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

constexpr double kMore = 1.1;
constexpr double kResolution = 0.004;  ///< relative, of a load that holds
constexpr double kMostWorth = 0.13;    ///< upper limit of the effect of ten percent more

struct Change {
  const char* what;
  void (*apply)(Deployment&);
};
constexpr std::array kChanges{
    Change{"nothing", nullptr},
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

/// A deployment with one change.
struct Changed {
  std::shared_ptr<const Deployment> deployment, prefill;
};

std::shared_ptr<const Deployment> changed_copy(const Change& change, const Deployment& deployment,
                                               const SpeculationSpec* speculation) {
  auto d = std::make_shared<Deployment>(deployment);
  change.apply(*d);
  d->memory = plan_memory(*d);
  if (speculation != nullptr && speculation->active()) reserve_draft(*d, *speculation);
  return d;
}

Changed changed_by(const Change& change, const Scenario& s) {
  const auto& split = s.serving.disaggregation;
  if (change.apply == nullptr) return {s.deployment, split ? split->prefill : nullptr};
  return {changed_copy(change, *s.deployment, &s.serving.speculation),
          split ? changed_copy(change, *split->prefill, nullptr) : nullptr};
}

/// Starting point of the search.
struct Probe {
  Fleet fleet;
  double near = 0;
  bool of_fleet = false;
  double most() const { return near * 2.0; }  ///< highest load that is tried
};

Scenario scenario_with(const PlannedDeployment& p, const Changed& changed, std::uint64_t seed) {
  Scenario s = p.candidate.scenario;
  s.serving.seed += seed;
  s.deployment = changed.deployment;
  if (s.serving.disaggregation) s.serving.disaggregation->prefill = changed.prefill;
  return s;
}

/// Tokens/s of a fixed load.
double tokens_per_s(const Scenario& s, const Fleet& fleet, PricerPool& pricers) {
  const LoadResult r = test_load(s, {.load = 1, .fleet = fleet, .seed = s.serving.seed, .more_requests = 1}, pricers);
  return r.metrics.output_tokens / std::max(r.metrics.duration.base(), 1e-12);
}

/// The highest load that holds with a change, in steps of kResolution (at least one user) from `base`, which held
/// without it while one step more did not. So two runs suffice if nothing changes. 0 if even three steps less do not
/// hold.
double held_near(const Scenario& s, double base, const Fleet& fleet, PricerPool& pricers) {
  constexpr int kFewest = -3;
  const bool users = load_kind(*s.workload) == LoadKind::kUsers;
  const double step = users ? std::max(1.0, kResolution * base) : std::log1p(kResolution);
  const int most = static_cast<int>(std::ceil((users ? kMostWorth * base : std::log1p(kMostWorth)) / step));
  const auto load = [&](int steps) { return users ? std::floor(base + steps * step) : base * std::exp(steps * step); };
  const auto holds = [&](int steps) {
    const LoadTest test{.load = load(steps), .fleet = fleet, .seed = s.serving.seed, .only_met = true};
    return load(steps) > 0 && test_load(s, test, pricers).met;
  };
  int good = 0, bad = 1;
  if (holds(1)) {
    for (good = 1; good < most && holds(bad = std::min(4 * good, most));) good = bad;
    if (good == most) return load(most);
  } else {
    while (!holds(good)) {
      if (good == kFewest) return 0;
      bad = good--;
    }
  }
  while (bad - good > 1) {
    const int middle = good + (bad - good) / 2;
    (holds(middle) ? good : bad) = middle;
  }
  return load(good);
}

/// The approximate pace that the fleet holds; a trace was simulated only at its own pace, which may be far from it.
double pace_near(const PlannedDeployment& p, PricerPool& pricers) {
  const Scenario& s = p.candidate.scenario;
  double pace = p.load;
  for (int i = 0; i < 10; ++i, pace *= 2) {
    const LoadTest twice{.load = 2 * pace, .fleet = p.fleet(), .seed = s.serving.seed, .more_requests = 1};
    if (!test_load(s, twice, pricers).met) break;
  }
  return pace;
}

/// One replica with its share of the load; or the fleet, if the two cannot be separated, or if a share alone is too
/// much for one replica because a router protects replicas from bursts.
Probe probe_of(const PlannedDeployment& p, PricerPool& pricers) {
  const Scenario& s = p.candidate.scenario;
  const LoadKind kind = load_kind(*s.workload);
  if (kind == LoadKind::kPace) return {p.fleet(), pace_near(p, pricers), true};
  if (p.candidate.disaggregated()) return {p.fleet(), p.held > 0 ? p.held : p.load, true};
  const Probe one{Fleet{}, p.held > 0 ? p.held : p.load / p.replicas, false};
  if (kind == LoadKind::kWhole || p.replicas == 1) return one;
  const double least = kind == LoadKind::kUsers ? std::max(1.0, std::floor(one.near * 0.8)) : one.near * 0.8;
  const LoadTest test{.load = least, .fleet = one.fleet, .seed = s.serving.seed, .more_requests = 1};
  if (test_load(s, test, pricers).met) return one;
  return p.tested.replicas > 1 ? Probe{p.tested, p.tested_load(), true} : Probe{p.fleet(), p.load, true};
}

/// Without objectives, patience or a queue limit, any number of users is served eventually.
bool takes_any_load(const Scenario& s) {
  return load_kind(*s.workload) == LoadKind::kUsers && s.objectives.empty() && s.goodput <= 0 &&
         s.workload->patience.endless() && s.serving.max_queue == 0;
}

constexpr std::size_t kSeeds = 2;
using BySeed = std::array<double, kSeeds>;

/// Runs pairs with the same seed. Empty if some seed holds no load at all. `resolution` of a pair, relative: the error
/// is at least half of it.
std::optional<Sensitivity> mean_change(const char* what, const BySeed& before, const BySeed& after, double resolution) {
  double sum = 0, squares = 0;
  for (std::size_t k = 0; k < kSeeds; ++k) {
    if (before[k] <= 0 || after[k] <= 0) return std::nullopt;
    const double change = after[k] / before[k] - 1.0;
    sum += change, squares += change * change;
  }
  const double mean = sum / kSeeds;
  const double error = std::sqrt(std::max(0.0, squares / kSeeds - mean * mean) / (kSeeds - 1));
  return Sensitivity{what, std::max(0.0, mean), std::max({error, -mean, resolution / 2})};
}

}  // namespace

Sensitivities sensitivities(const PlannedDeployment& planned, PricerPool& pricers) {
  constexpr int kDoublings = 10;
  if (takes_any_load(planned.candidate.scenario)) return {};
  std::array<std::array<double, kSeeds>, kChanges.size()> throughput{};
  Probe probe = probe_of(planned, pricers);
  const LoadKind kind = load_kind(*planned.candidate.scenario.workload);
  const bool whole = kind == LoadKind::kWhole;
  // At the highest load tried nothing limits the fleet, so every change would seem to have no effect.
  const auto capped = [&] {
    const double most = kind == LoadKind::kUsers ? std::floor(probe.most()) : probe.most();
    return !whole && throughput[0][0] >= most * (1 - 1e-9);
  };
  std::array<Changed, kChanges.size()> changed;
  for (std::size_t i = 0; i < kChanges.size(); ++i) changed[i] = changed_by(kChanges[i], planned.candidate.scenario);
  const auto hold = [&](std::size_t change, std::size_t seed) {
    const Scenario s = scenario_with(planned, changed[change], seed);
    double& held = throughput[change][seed];
    if (whole) {
      held = tokens_per_s(s, planned.tested, pricers);
    } else if (change > 0) {
      held = held_near(s, throughput[0][seed], probe.fleet, pricers);
    } else {
      const LoadRange range{.low = probe.near * 0.8, .high = probe.most(), .tolerance = kResolution, .only_met = true};
      std::vector<TriedLoad> tried;
      held = held_load(s, range, probe.fleet, pricers, tried).load;
    }
  };
  const auto hold_unchanged = [&] { parallel_for_each_index(kSeeds, [&](std::size_t k) { hold(0, k); }); };
  hold_unchanged();
  const int doublings = kind == LoadKind::kPace ? 0 : kDoublings;  // pace_near() has covered that range
  for (int i = 0; i < doublings && capped(); ++i) {
    probe.near *= 2;
    hold_unchanged();
  }
  if (!capped()) {
    parallel_for_each_index((kChanges.size() - 1) * kSeeds, [&](std::size_t k) { hold(1 + k / kSeeds, k % kSeeds); });
  }
  Sensitivities out;
  out.of_fleet = probe.of_fleet;
  if (!whole) out.held = throughput[0][0] * (probe.of_fleet ? planned.replicas / (1.0 * probe.fleet.replicas) : 1.0);
  if (capped()) {
    out.held_more = std::exchange(out.held, 0);
    return out;
  }
  const double one_user = kind == LoadKind::kUsers && out.held > 0 ? 1 / throughput[0][0] : 0,
               resolution = whole ? 0 : std::max(kResolution, one_user);
  for (std::size_t i = 1; i < kChanges.size(); ++i) {
    const auto change = mean_change(kChanges[i].what, throughput[0], throughput[i], resolution);
    if (change) out.changes.push_back(*change);
  }
  std::stable_sort(out.changes.begin(), out.changes.end(), [](const Sensitivity& a, const Sensitivity& b) {
    return a.throughput_change > b.throughput_change;
  });
  return out;
}

}  // namespace roofcast
