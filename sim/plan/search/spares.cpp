#include "sim/plan/search/spares.h"

#include <cmath>

namespace roofcast {
namespace {

constexpr int kMostSpares = 1000;
constexpr int kNoneWillDo = 1 << 20;  // more than any fleet has

}  // namespace

double replica_availability(const FleetSpec& fleet, int gpus) {
  SIM_CHECK(fleet.failures && fleet.failures->mtbf, "how often a GPU fails is given");
  const double up = fleet.failures->mtbf->base() / gpus;
  return up / (up + fleet.failures->repair.base() + fleet.cold_start.base());
}

double fleet_availability(int needed, int spare, double up) {
  if (up >= 1) return 1;
  const int all = needed + spare;
  double sum = 0, log_ways = 0;  // of choosing those that are down
  for (int down = 0; down <= spare; ++down) {
    sum += std::exp(log_ways + down * std::log1p(-up) + (all - down) * std::log(up));
    log_ways += std::log(static_cast<double>(all - down)) - std::log(down + 1.0);
  }
  return std::min(sum, 1.0);
}

double fleet_availability(int needed, int spare, double up, int zones, double zone_up) {
  const int all = needed + spare, each = all / zones, fuller = all % zones;  // so many have one more
  const auto binomial = [](int n, int k, double p) {
    double ways = 1;
    for (int i = 0; i < k; ++i) ways *= (n - i) / (i + 1.0);
    return ways * std::pow(p, k) * std::pow(1 - p, n - k);
  };
  double sum = 0;
  for (int full = 0; full <= fuller; ++full) {
    for (int rest = 0; rest <= zones - fuller; ++rest) {
      const int there = full * (each + 1) + rest * each;
      if (there < needed) continue;
      sum += binomial(fuller, full, zone_up) * binomial(zones - fuller, rest, zone_up) *
             fleet_availability(needed, there - needed, up);
    }
  }
  return std::min(sum, 1.0);
}

double fleet_availability(const PlanSpec& plan, const Candidate& c, int needed, int spare) {
  return plan.zones ? fleet_availability(needed, spare, c.up, plan.zones->count, c.zone_up)
                    : fleet_availability(needed, spare, c.up);
}

int spares_of(const PlanSpec& plan, const Candidate& c, int replicas) {
  if (plan.availability <= 0) return plan.spare_replicas;
  // The fraction of the time in which all zones are down.
  if (plan.zones && 1 - std::pow(1 - c.zone_up, plan.zones->count) < plan.availability) return kNoneWillDo;
  int spare = 0;
  while (fleet_availability(plan, c, replicas, spare) < plan.availability) {
    if (++spare > kMostSpares) return kNoneWillDo;
  }
  return spare;
}

int most_replicas(const PlanSpec& plan, const Candidate& c) {
  int most = c.most_replicas(0);
  if (plan.availability <= 0) return most - plan.spare_replicas;
  // Each additional replica needs as many spares or one more, so the sum is monotonic.
  int good = 0;
  for (int bad = most + 1; bad - good > 1;) {
    const int middle = good + (bad - good) / 2;
    (middle + spares_of(plan, c, middle) <= most ? good : bad) = middle;
  }
  return good;
}

void take_failures(const PlanSpec& plan, Candidate& c) {
  if (plan.availability <= 0) return;
  FleetSpec& fleet = c.scenario.serving.fleet;
  if (plan.zones) {
    const Seconds down = plan.zones->repair + fleet.cold_start;
    c.zone_up = plan.zones->mtbf / (plan.zones->mtbf + down);
  }
  const bool known = fleet.failures && fleet.failures->mtbf;
  if (!known && !plan.zones) {
    throw ConfigError(plan.space.scenario->location,
                      "'availability' needs to know how often GPUs fail, or a provider takes them back: "
                      "'failures: {mtbf: 2000 h, repair: 30 min}' beside 'search'");
  }
  if (known) c.up = replica_availability(fleet, c.gpus());
  fleet.failures.reset();
}

}  // namespace roofcast
