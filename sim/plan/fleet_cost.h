#pragma once
// Money and energy of a simulated run.

#include <optional>
#include <vector>

#include "sim/plan/prices.h"
#include "sim/serve/metrics.h"
#include "sim/serve/simulation.h"

namespace roofcast {

struct Deployment;

struct FleetCost {
  double gpus = 0;
  double busy_share = 0;  ///< share of the GPUs' time in which a step was running
  double mfu = 0, mbu = 0;
  Joules energy;      ///< not a number where the power of some GPU is not known
  Watts board_power;  ///< the most that all GPUs together may draw
  Bill bill;          ///< its offers are those of the deployments
  double usd_per_hour = 0;
  double joules_per_output_token = 0;
};

/// Replicas paid for, on average over the run: those of an autoscaled fleet, else all of them.
double paid_replicas(const ServingMetrics& metrics, int replicas);
double paid_prefill_replicas(const ServingMetrics& metrics, int replicas);

/// How many replicas of each kind are paid for, and for how long: all of them all the time, or those of a fleet that
/// changes.
std::vector<FleetSpan> paid_spans(const ServingMetrics& metrics, int replicas, int prefill_replicas);

/// The GPUs of paid_replicas() draw power_of() while a step runs and idle power otherwise. Paid for are whole
/// instances, of an autoscaled fleet those of the replicas there are at the time. With disaggregation `deployment` and
/// `replicas` are the decoding ones, and the prefilling ones come on top; shares are means over GPUs.
FleetCost fleet_cost(const ServingMetrics& metrics, const Deployment& deployment, int replicas,
                     const std::optional<Disaggregation>& disaggregation = std::nullopt);

/// Mean power of all GPUs together.
inline Watts mean_power(const FleetCost& cost, const ServingMetrics& metrics) {
  return {metrics.duration.base() > 0 ? cost.energy.value / metrics.duration.base() : 0.0};
}

}  // namespace roofcast
