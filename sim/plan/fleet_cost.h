#pragma once
// Cost and energy of a simulated run.

#include <optional>
#include <vector>

#include "sim/plan/prices.h"
#include "sim/serve/metrics.h"
#include "sim/serve/simulation.h"

namespace roofcast {

struct Deployment;

struct FleetCost {
  double gpus = 0;
  double busy_share = 0;  ///< fraction of the GPU time in which a step was running
  double mfu = 0, mbu = 0;
  Joules energy;      ///< NaN if the power of some GPU is unknown
  Watts board_power;  ///< power limit of all GPUs together
  Bill bill;          ///< at offers of the deployments
  double usd_per_hour = 0;
  double joules_per_output_token = 0;
};

/// Mean number of replicas paid for over the run: of the autoscaled fleet, else all of them.
double paid_replicas(const ServingMetrics& metrics, int replicas);
double paid_prefill_replicas(const ServingMetrics& metrics, int replicas);

/// How many replicas of each kind are paid for, and for how long: all of them all the time, or by size of a changing
/// fleet.
std::vector<FleetSpan> paid_spans(const ServingMetrics& metrics, int replicas, int prefill_replicas);

/// The paid_replicas() draw power_of() while a step runs and idle power otherwise. Instances are paid for whole; an
/// autoscaled fleet pays for those of the current replicas. With disaggregation, `deployment` and `replicas` are the
/// decode workers, and the prefill workers are added; fractions are means over GPUs.
FleetCost fleet_cost(const ServingMetrics& metrics, const Deployment& deployment, int replicas,
                     const std::optional<Disaggregation>& disaggregation = std::nullopt);

/// Mean power of all GPUs together.
inline Watts mean_power(const FleetCost& cost, const ServingMetrics& metrics) {
  return {metrics.duration.base() > 0 ? cost.energy.value / metrics.duration.base() : 0.0};
}

}  // namespace roofcast
