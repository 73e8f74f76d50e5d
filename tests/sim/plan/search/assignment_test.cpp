#include "sim/plan/search/assignment.h"

#include <cmath>
#include <numeric>

#include <doctest/doctest.h>

#include "base/random.h"

using namespace roofcast;

namespace {

/// Fewest instances of one pool for these replicas, by trying every instance for each of them.
int fewest_instances(std::vector<int> replicas, int host) {
  int fixed = 0;
  std::erase_if(replicas, [&](int gpus) {
    if (gpus > host) fixed += (gpus + host - 1) / host;
    return gpus > host;
  });
  int best = static_cast<int>(replicas.size());
  std::vector<int> used;
  const auto place = [&](auto&& self, std::size_t i) -> void {
    if (static_cast<int>(used.size()) >= best && i < replicas.size()) return;
    if (i == replicas.size()) {
      best = std::min(best, static_cast<int>(used.size()));
      return;
    }
    for (std::size_t u = 0; u < used.size(); ++u) {
      if (used[u] + replicas[i] > host) continue;
      used[u] += replicas[i];
      self(self, i + 1);
      used[u] -= replicas[i];
    }
    used.push_back(replicas[i]);
    self(self, i + 1);
    used.pop_back();
  };
  place(place, 0);
  return fixed + best;
}

struct Priced {
  double usd = 0, watts = 0;
  int gpus = 0;
  bool keeps = true;
};

Priced priced(const std::vector<GpuPool>& pools, const std::vector<FleetOption>& fleets, const SharedLimits& limits) {
  Priced out;
  std::vector<std::vector<int>> replicas(pools.size());
  for (const FleetOption& fleet : fleets) {
    out.watts += fleet.watts;
    for (const PooledReplicas& part : fleet.parts) {
      out.gpus += part.gpus * part.replicas;
      for (int i = 0; i < part.replicas; ++i) replicas[part.pool].push_back(part.gpus);
    }
  }
  for (std::size_t p = 0; p < pools.size(); ++p)
    out.usd += fewest_instances(replicas[p], pools[p].host) * pools[p].host * pools[p].usd_per_gpu_hour;
  out.keeps = out.gpus <= limits.max_gpus && (!limits.max_usd_per_hour || out.usd <= *limits.max_usd_per_hour + 1e-9) &&
              (!limits.max_watts || out.watts <= *limits.max_watts + 1e-9);
  for (const auto& [gpu, count] : limits.available) {
    int used = 0;
    for (std::size_t p = 0; p < pools.size(); ++p) {
      if (pools[p].gpu == gpu) used += std::accumulate(replicas[p].begin(), replicas[p].end(), 0);
    }
    out.keeps = out.keeps && used <= count;
  }
  return out;
}

/// The best of every combination of options.
std::optional<Priced> best_of_all(const std::vector<GpuPool>& pools,
                                  const std::vector<std::vector<FleetOption>>& services, const SharedLimits& limits,
                                  Cheapest by) {
  std::optional<Priced> best;
  std::vector<FleetOption> fleets;
  const auto choose = [&](auto&& self, std::size_t service) -> void {
    if (service < services.size()) {
      for (const FleetOption& option : services[service]) {
        fleets.push_back(option);
        self(self, service + 1);
        fleets.pop_back();
      }
      return;
    }
    const Priced p = priced(pools, fleets, limits);
    if (!p.keeps) return;
    const bool usd_first = by == Cheapest::kUsd;
    const double first = usd_first ? p.usd : p.gpus, second = usd_first ? p.gpus : p.usd;
    if (!best) {
      best = p;
      return;
    }
    const double known = usd_first ? best->usd : best->gpus, other = usd_first ? best->gpus : best->usd;
    if (first < known - 1e-9 || (std::abs(first - known) <= 1e-9 && second < other - 1e-9)) best = p;
  };
  choose(choose, 0);
  return best;
}

}  // namespace

TEST_CASE("assignment: two services share an instance that each would rent whole") {
  // Instances of 8 at 2 USD/h per GPU. Alone: 3 x tp 1 pays 8, 1 x tp 4 pays 8, so 32 USD/h; 7 of 8 GPUs together: 16.
  const std::vector<GpuPool> pools{{"h100-sxm", 2, 8}};
  const std::vector<std::vector<FleetOption>> services{{{.parts = {{0, 1, 3}}}}, {{.parts = {{0, 4, 1}}}}};
  const auto found = cheapest_assignment(pools, services, {.max_gpus = 8}).best;
  REQUIRE(found);
  CHECK(found->gpus == 7);
  CHECK(found->paid_gpus == 8);
  CHECK(found->usd_per_hour == doctest::Approx(16));
  const auto instances = packed(pools, {services[0][0], services[1][0]});
  REQUIRE(instances.size() == 1);
  CHECK(instances[0].gpus == std::vector<std::pair<std::size_t, int>>{{0, 3}, {1, 4}});
  const AssignmentOutcome none = cheapest_assignment(pools, services, {.max_gpus = 6});
  CHECK_FALSE(none.best);
  CHECK(none.decided);
}

TEST_CASE("assignment: who gets the scarce GPUs is decided by what the other would cost") {
  // 4 cheap GPUs are there. Either service takes them all: saves 20 - 4 = 16 for the first, 9 - 4 = 5 for the second.
  const std::vector<GpuPool> pools{{"a", 1, 1}, {"b", 5, 1}, {"c", 3, 1}};
  const std::vector<std::vector<FleetOption>> services{{{.parts = {{0, 1, 4}}}, {.parts = {{1, 1, 4}}}},
                                                       {{.parts = {{0, 1, 4}}}, {.parts = {{2, 1, 3}}}}};
  const auto found = cheapest_assignment(pools, services, {.max_gpus = 100, .available = {{"a", 4}}}).best;
  REQUIRE(found);
  CHECK(found->chosen == std::vector<std::size_t>{0, 1});
  CHECK(found->usd_per_hour == doctest::Approx(13));
}

TEST_CASE("assignment: a replica larger than an instance takes whole ones") {
  const std::vector<GpuPool> pools{{"a", 1, 8}};
  const auto found = cheapest_assignment(pools, {{{.parts = {{0, 16, 2}}}}}, {.max_gpus = 32}).best;
  REQUIRE(found);
  CHECK(found->paid_gpus == 32);
  CHECK(packed(pools, {{.parts = {{0, 16, 2}}}}).size() == 4);
}

TEST_CASE("assignment: an instance tells its replicas apart") {
  // A prefill worker of 4 GPUs (part 1) and two decode workers of 1 (part 0), then one replica of 2 of another service.
  const std::vector<GpuPool> pools{{"a", 1, 8}};
  const auto instances = packed(pools, {{.parts = {{0, 1, 2}, {0, 4, 1}}}, {.parts = {{0, 2, 1}}}});
  REQUIRE(instances.size() == 1);
  CHECK(instances[0].replicas == std::vector<PackedReplica>{{0, 0, 1}, {0, 0, 1}, {0, 1, 4}, {1, 0, 2}});
}

TEST_CASE("assignment: a search that ends too early is not decided") {
  // Each replica of 5 GPUs takes an instance of 8, so three cost 24 USD/h: no choice keeps 20, but the GPUs used, 15,
  // do, so all 3^3 are tried.
  const std::vector<GpuPool> pools{{"a", 1, 8}};
  const FleetOption five{.parts = {{0, 5, 1}}};
  const std::vector<std::vector<FleetOption>> services(3, {five, five, five});
  const SharedLimits limits{.max_gpus = 100, .max_usd_per_hour = 20};
  const AssignmentOutcome all = cheapest_assignment(pools, services, limits);
  CHECK_FALSE(all.best);
  CHECK(all.decided);
  const AssignmentOutcome some = cheapest_assignment(pools, services, limits, Cheapest::kUsd, 10);
  CHECK_FALSE(some.best);
  CHECK_FALSE(some.decided);
  const AssignmentOutcome found = cheapest_assignment(pools, services, {.max_gpus = 100}, Cheapest::kUsd, 3);
  REQUIRE(found.best);
  CHECK(found.decided);
  CHECK_FALSE(found.best->proven);
}

TEST_CASE("assignment: a price that is not known keeps no limit of cost") {
  const std::vector<GpuPool> pools{{"a", std::nan(""), 1}};
  const std::vector<std::vector<FleetOption>> services{{{.parts = {{0, 1, 1}}}}};
  CHECK(cheapest_assignment(pools, services, {.max_gpus = 8}, Cheapest::kGpus).best);
  CHECK_FALSE(cheapest_assignment(pools, services, {.max_gpus = 8, .max_usd_per_hour = 100}, Cheapest::kGpus).best);
}

TEST_CASE("assignment: as cheap as the best of every combination and packing") {
  Random random(23);
  const auto draw = [&](int low, int high) { return static_cast<int>(random.uniform_integer(low, high)); };
  int found_some = 0, shared = 0, none = 0;
  for (int round = 0; round < 400; ++round) {
    // Sizes of instances that replicas of 1, 2, 4 and 8 GPUs divide, as they are sold.
    const std::vector<GpuPool> pools{{"a", 1.0 + draw(0, 3), 8}, {"b", 1.0 + draw(0, 4), 4}, {"b", 2.5, 1}};
    std::vector<std::vector<FleetOption>> services(static_cast<std::size_t>(draw(1, 3)));
    for (auto& options : services) {
      for (int i = draw(1, 4); i > 0; --i) {
        FleetOption option{.parts = {}, .watts = 100.0 * draw(1, 9)};
        for (int part = draw(1, 2); part > 0; --part)
          option.parts.push_back({static_cast<std::size_t>(draw(0, 2)), 1 << draw(0, 3), draw(1, 3)});
        options.push_back(std::move(option));
      }
    }
    SharedLimits limits{.max_gpus = draw(8, 60)};
    if (draw(0, 2) == 0) limits.max_usd_per_hour = draw(20, 120);
    if (draw(0, 2) == 0) limits.max_watts = 100.0 * draw(4, 20);
    if (draw(0, 2) == 0) limits.available = {{"b", draw(2, 16)}};
    const Cheapest by = draw(0, 3) == 0 ? Cheapest::kGpus : Cheapest::kUsd;
    const auto best = best_of_all(pools, services, limits, by);
    const auto found = cheapest_assignment(pools, services, limits, by).best;
    REQUIRE(found.has_value() == best.has_value());
    none += found ? 0 : 1;
    if (!found) continue;
    ++found_some;
    CHECK(found->proven);
    CHECK(found->usd_per_hour == doctest::Approx(best->usd));
    CHECK(found->gpus == best->gpus);
    // What is said of instances is what was priced.
    std::vector<FleetOption> fleets;
    for (std::size_t s = 0; s < services.size(); ++s) fleets.push_back(services[s][found->chosen[s]]);
    double usd = 0;
    int used = 0;
    for (const Instance& instance : packed(pools, fleets)) {
      int within = 0, of_replicas = 0;
      for (const PackedReplica& replica : instance.replicas) of_replicas += replica.gpus;
      for (const auto& [service, gpus] : instance.gpus) within += gpus;
      CHECK(within <= pools[instance.pool].host);
      CHECK(of_replicas == within);
      used += within;
      usd += pools[instance.pool].host * pools[instance.pool].usd_per_gpu_hour;
      shared += instance.gpus.size() > 1 ? 1 : 0;
    }
    CHECK(usd == doctest::Approx(found->usd_per_hour));
    CHECK(used == found->gpus);
  }
  CHECK(found_some > 100);
  CHECK(none > 20);
  CHECK(shared > 50);
}

TEST_CASE("assignment: replicas that share an instance begin at multiples of their size") {
  // Services in the order of the plan: one GPU, two, four, one.
  const Instance instance{0, {}, {{0, 0, 1}, {1, 0, 2}, {2, 0, 4}, {3, 0, 1}}};
  CHECK(first_gpus(instance) == std::vector<int>{6, 4, 0, 7});
}
