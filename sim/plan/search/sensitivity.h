#pragma once
// What would help a planned deployment: simulations with ten percent more of one resource.

#include "sim/plan/search/capacity_search.h"

namespace roofcast {

struct Sensitivity {
  std::string what;              ///< "memory bandwidth", ...
  double throughput_change = 0;  ///< relative, in the load per replica (or the tokens/s of a fixed load)
  double error = 0;              ///< its standard error over the seeds
  double cost_change() const { return 1.0 / (1.0 + throughput_change) - 1.0; }
};

struct Sensitivities {
  double held = 0;        ///< load of one replica, or the fleet, unchanged; 0: fixed load, or held_more is set
  double held_more = 0;   ///< the highest load tried, if it held too
  bool of_fleet = false;  ///< for the fleet: traces, disaggregation, and uneven routing
  std::vector<Sensitivity> changes;
};

/// +10 % of bandwidth, FLOP/s, memory capacity and links, and a host 10 % faster. Largest change first. Each is a mean
/// over several seeds, with and without the change for the same arrivals. More of a resource never hurts on average, so
/// a negative change is chance and becomes 0, with its size as error. Loads are found to 0.4 %, so errors are at least
/// 0.2 %.
Sensitivities sensitivities(const PlannedDeployment& planned, PricerPool& pricers);

}  // namespace roofcast
