#include "sim/plan/fleet_cost.h"

#include <algorithm>
#include <vector>

#include "sim/plan/power.h"

namespace roofcast {
namespace {

/// What the replicas of one deployment did.
struct PoolWork {
  const Deployment& deployment;
  double replicas;
  double busy_seconds, flops, bytes;
};

/// Adds a pool; shares are weighted by GPUs and divided by all of them in the end.
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

/// How many replicas are paid for, and for how long.
std::vector<FleetSpan> spans_of(const ServingMetrics& m, int replicas, int prefill_replicas) {
  if (m.seconds_paid_for.empty()) return {{replicas, prefill_replicas, m.duration.in(kHour)}};
  std::vector<FleetSpan> spans;
  for (std::size_t n = 0; n < m.seconds_paid_for.size(); ++n) {
    if (m.seconds_paid_for[n] > 0)
      spans.push_back({static_cast<int>(n), prefill_replicas, m.seconds_paid_for[n] / 3600});
  }
  return spans;
}

}  // namespace

double paid_replicas(const ServingMetrics& m, int replicas) {
  return m.replica_seconds > 0 && m.duration > Seconds(0) ? m.replica_seconds / m.duration.base() : replicas;
}

FleetCost fleet_cost(const ServingMetrics& m, const Deployment& d, int all_replicas,
                     const std::optional<Disaggregation>& disaggregation) {
  FleetCost cost;
  const double replicas = paid_replicas(m, all_replicas);
  cost.gpus = d.sharding.gpus() * replicas;
  if (disaggregation)
    cost.gpus += static_cast<double>(disaggregation->prefill->sharding.gpus()) * disaggregation->prefill_replicas;
  cost.bill = cheapest_bill(d, disaggregation ? disaggregation->prefill.get() : nullptr,
                            spans_of(m, all_replicas, disaggregation ? disaggregation->prefill_replicas : 0));
  cost.usd_per_hour = cost.bill.usd_per_hour();
  if (m.duration <= Seconds(0)) return cost;
  add_pool(
      cost,
      {d, replicas, m.gpu_busy_seconds - m.prefill_busy_seconds, m.flops - m.prefill_flops, m.bytes - m.prefill_bytes},
      m.duration);
  if (disaggregation) {
    add_pool(cost,
             {*disaggregation->prefill, static_cast<double>(disaggregation->prefill_replicas), m.prefill_busy_seconds,
              m.prefill_flops, m.prefill_bytes},
             m.duration);
  }
  for (double* share : {&cost.busy_share, &cost.mfu, &cost.mbu}) *share /= cost.gpus;
  const double usd = cost.usd_per_hour * m.duration.in(kHour);
  if (m.output_tokens > 0) {
    cost.usd_per_million_output_tokens = usd / m.output_tokens * 1e6;
    cost.usd_per_million_total_tokens = usd / (m.input_tokens + m.output_tokens) * 1e6;
    cost.joules_per_output_token = cost.energy.value / m.output_tokens;
  }
  return cost;
}

}  // namespace roofcast
