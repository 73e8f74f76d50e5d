#include "sim/plan/fleet_cost.h"

#include <algorithm>

#include "sim/plan/power.h"

namespace roofcast {

double paid_replicas(const ServingMetrics& m, int replicas) {
  return m.replica_seconds > 0 && m.duration > Seconds(0) ? m.replica_seconds / m.duration.base() : replicas;
}

FleetCost fleet_cost(const ServingMetrics& m, const Deployment& d, int all_replicas) {
  FleetCost cost;
  const double replicas = paid_replicas(m, all_replicas);
  const double seconds = m.duration.base(), gpus = d.sharding.gpus() * replicas;
  if (seconds <= 0) return cost;
  const Seconds busy(m.gpu_busy_seconds / replicas);  // of one replica, on average
  cost.busy_share = std::min(1.0, busy.base() / seconds);
  const Utilization whole = utilization_of(d, m.duration, Flops(m.flops / gpus), Bytes(m.bytes / gpus));
  const Utilization working = utilization_of(d, busy, Flops(m.flops / gpus), Bytes(m.bytes / gpus));
  cost.mfu = whole.compute;
  cost.mbu = whole.memory;
  const Seconds idle(std::max(0.0, seconds - busy.base()));
  cost.energy = Joules{((power_of(d.gpu, working) * busy).value + (d.gpu.idle_power * idle).value) * gpus};
  cost.usd_per_hour = d.gpu.price.value * gpus;
  const double usd = cost.usd_per_hour * seconds / 3600.0;
  if (m.output_tokens > 0) {
    cost.usd_per_million_output_tokens = usd / m.output_tokens * 1e6;
    cost.usd_per_million_total_tokens = usd / (m.input_tokens + m.output_tokens) * 1e6;
    cost.joules_per_output_token = cost.energy.value / m.output_tokens;
  }
  return cost;
}

}  // namespace roofcast
