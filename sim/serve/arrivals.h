#pragma once
// Arrival times of processes that do not depend on the server (open loads).

#include <cstdint>
#include <vector>

#include "sim/serve/workload.h"

namespace roofcast {

ArrivalSpec parse_arrivals(ConfigReader in);

/// Generates arrival times in order. A constant process sends request i at i / rate. A Poisson or gamma process waits
/// one gap before its first request, as `vllm bench serve` does. The others send everything at 0. With a rate profile,
/// gaps are drawn at constant rate in stretched ("even") time and mapped back through the integral of the profile.
class ArrivalClock {
 public:
  /// Starts at time `start` of the profile with no earlier arrivals. Returned times count from `start`.
  ArrivalClock(const ArrivalSpec& arrivals, Random random, Seconds start = Seconds(0));
  Seconds next();

 private:
  double stretched(double even) const;
  double even(double time) const;
  std::size_t slice_at(double rest) const;
  double gap(double mean);

  ArrivalSpec arrivals_;
  Random random_;
  std::vector<double> passed_;  ///< even time at the end of each slice of the profile, s
  Seconds start_;
  double begin_ = 0.0;  ///< even time at the start
  double now_ = 0.0;
  std::int64_t sent_ = 0;
};

}  // namespace roofcast
