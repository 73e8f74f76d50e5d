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

int spares_of(const PlanSpec& plan, const Candidate& c, int replicas) {
  if (plan.availability <= 0) return plan.spare_replicas;
  int spare = 0;
  while (fleet_availability(replicas, spare, c.up) < plan.availability) {
    if (++spare > kMostSpares) return kNoneWillDo;
  }
  return spare;
}

int most_replicas(const PlanSpec& plan, const Candidate& c) {
  int most = c.most_replicas(0);
  if (plan.availability <= 0) return most - plan.spare_replicas;
  // Every replica more needs as many spares or one more, so the sum grows with it.
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
  if (!fleet.failures || !fleet.failures->mtbf) {
    throw ConfigError(plan.space.scenario->mark,
                      "'availability' needs to know how often GPUs fail, or a provider takes them back: "
                      "'failures: {mtbf: 2000 h, repair: 30 min}' beside 'search'");
  }
  c.up = replica_availability(fleet, c.gpus());
  fleet.failures.reset();
}

}  // namespace roofcast
