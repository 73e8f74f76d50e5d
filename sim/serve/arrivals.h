#pragma once
// When requests arrive, for the processes that have a clock of their own.

#include <cstdint>
#include <vector>

#include "sim/serve/workload.h"

namespace roofcast {

ArrivalSpec parse_arrivals(ConfigReader in);

/// Arrival times one after another. A constant process sends request i at i / rate; a Poisson or gamma
/// process waits one gap before its first request, as `vllm bench serve` does; the others send at 0. Under a profile
/// the process runs in stretched time: a gap ends when the rate, integrated over it, has reached what the even rate
/// has.
class ArrivalClock {
 public:
  /// From `start` of the profile on, as if nothing had come before; times count from there.
  ArrivalClock(const ArrivalSpec& arrivals, Random random, Seconds start = Seconds(0));
  Seconds next();

 private:
  double stretched(double even) const;
  double even(double time) const;
  std::size_t slice_at(double rest) const;
  double gap(double mean);

  ArrivalSpec arrivals_;
  Random random_;
  std::vector<double> passed_;  ///< by slice of the profile: even time up to its end, s
  Seconds start_;
  double begin_ = 0.0;  ///< even time at the start
  double now_ = 0.0;
  std::int64_t sent_ = 0;
};

}  // namespace roofcast
