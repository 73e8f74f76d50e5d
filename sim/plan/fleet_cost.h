#pragma once
// Money and energy of a simulated run.

#include "sim/serve/metrics.h"
#include "sim/step/deployment.h"

namespace roofcast {

struct FleetCost {
  double busy_share = 0;  ///< of the replicas' time that a step was running
  double mfu = 0, mbu = 0;
  Joules energy;
  double usd_per_hour = 0;
  double usd_per_million_output_tokens = 0, usd_per_million_total_tokens = 0;
  double joules_per_output_token = 0;
};

/// Replicas paid for, on average over the run: those of an autoscaled fleet, else all of them.
double paid_replicas(const ServingMetrics& metrics, int replicas);

/// The GPUs of paid_replicas() are paid for the whole duration; they draw power_of() while a step runs and idle power
/// otherwise.
FleetCost fleet_cost(const ServingMetrics& metrics, const Deployment& deployment, int replicas);

}  // namespace roofcast
