#include "sim/plan/fleet_cost.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/plan/power.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

/// The work of the replicas of one deployment.
struct PoolWork {
  const Deployment& deployment;
  double replicas;
  double busy_seconds, flops, bytes;
};

/// Adds a pool; fractions are weighted by GPUs and normalized at the end.
void add_pool(FleetCost& cost, const PoolWork& work, Seconds duration) {
  const Deployment& d = work.deployment;
  const double gpus = d.sharding.gpus() * work.replicas;
  const Seconds busy(work.busy_seconds / work.replicas);  // of one replica, on average
  const Flops flops(work.flops / gpus);
  const Bytes bytes(work.bytes / gpus);
  const Utilization whole = utilization_of(d, duration, flops, bytes), working = drawn_by(d, busy, flops, bytes);
  const Seconds idle(std::max(0.0, (duration - busy).base()));
  cost.board_power.value += gpus * d.gpu.board_power.value;
  cost.busy_share += gpus * std::min(1.0, busy / duration);
  cost.mfu += gpus * whole.compute;
  cost.mbu += gpus * whole.memory;
  cost.energy.value += ((power_of(d.gpu, working) * busy).value + (d.gpu.idle_power * idle).value) * gpus;
}

/// A constant fleet has an integer mean.
double mean_replicas(double replica_seconds, Seconds duration, int replicas) {
  if (replica_seconds <= 0 || duration <= Seconds(0)) return replicas;
  const double mean = replica_seconds / duration.base(), whole = std::round(mean);
  return std::abs(mean - whole) < 1e-9 * mean ? whole : mean;
}

}  // namespace

double paid_replicas(const ServingMetrics& m, int replicas) {
  return mean_replicas(m.replica_seconds, m.duration, replicas);
}
double paid_prefill_replicas(const ServingMetrics& m, int replicas) {
  return mean_replicas(m.prefill_replica_seconds, m.duration, replicas);
}

std::vector<FleetSpan> paid_spans(const ServingMetrics& m, int replicas, int prefill_replicas) {
  if (m.paid_fleets.empty()) return {{replicas, prefill_replicas, m.duration.in(kHour)}};
  std::vector<FleetSpan> spans;
  for (const PaidFleet& paid : m.paid_fleets) {
    spans.push_back({m.replica_seconds > 0 ? paid.replicas : replicas,
                     m.prefill_replica_seconds > 0 ? paid.prefill_replicas : prefill_replicas, paid.seconds / 3600});
  }
  return spans;
}

FleetCost fleet_cost(const ServingMetrics& m, const Deployment& d, int all_replicas,
                     const std::optional<Disaggregation>& disaggregation) {
  FleetCost cost;
  const double replicas = paid_replicas(m, all_replicas);
  cost.gpus = d.sharding.gpus() * replicas;
  const double prefill_replicas = disaggregation ? paid_prefill_replicas(m, disaggregation->prefill_replicas) : 0;
  if (disaggregation) cost.gpus += disaggregation->prefill->sharding.gpus() * prefill_replicas;
  cost.bill = cheapest_bill(d, disaggregation ? disaggregation->prefill.get() : nullptr,
                            paid_spans(m, all_replicas, disaggregation ? disaggregation->prefill_replicas : 0));
  cost.usd_per_hour = cost.bill.usd_per_hour();
  if (m.duration <= Seconds(0)) return cost;
  add_pool(
      cost,
      {d, replicas, m.gpu_busy_seconds - m.prefill_busy_seconds, m.flops - m.prefill_flops, m.bytes - m.prefill_bytes},
      m.duration);
  if (disaggregation) {
    add_pool(cost,
             {*disaggregation->prefill, prefill_replicas, m.prefill_busy_seconds, m.prefill_flops, m.prefill_bytes},
             m.duration);
  }
  for (double* share : {&cost.busy_share, &cost.mfu, &cost.mbu}) *share /= cost.gpus;
  if (m.output_tokens > 0) cost.joules_per_output_token = cost.energy.value / m.output_tokens;
  return cost;
}

}  // namespace roofcast
