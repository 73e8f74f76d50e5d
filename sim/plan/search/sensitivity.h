#pragma once
// What would help a planned deployment: ten percent more of one thing, simulated again.

#include "sim/plan/search/capacity_search.h"

namespace roofcast {

struct Sensitivity {
  std::string what;              ///< "memory bandwidth", ...
  double throughput_change = 0;  ///< relative, of the load one replica holds (or of the tokens/s of a fixed load)
  double error = 0;              ///< standard error of it over the seeds
  double cost_change() const { return 1.0 / (1.0 + throughput_change) - 1.0; }
};

struct Sensitivities {
  double held = 0;        ///< what one replica, or the fleet, holds as it is; 0: the load is fixed, or held_more is set
  double held_more = 0;   ///< the most that was tried, where that held too
  bool of_fleet = false;  ///< of a trace, of workers apart, and where a router's share is easier than a replica's
  std::vector<Sensitivity> changes;
};

/// +10 % of bandwidth, FLOP/s, memory capacity, links, and a host 10 % faster. Largest change first. Each is the mean
/// over several seeds, with and without the change under the same arrivals. More of a thing never hurts a fleet in the
/// mean: a change below 0 is the luck of a schedule, and counts as 0 with an error as large. Loads that hold are found
/// to 0.4 %, so no error of theirs is below 0.2 %.
Sensitivities sensitivities(const PlannedDeployment& planned, PricerPool& pricers);

}  // namespace roofcast
