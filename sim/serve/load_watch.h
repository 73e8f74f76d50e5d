#pragma once
// Whether requests come faster than they are served: then latencies say how long the run was, and nothing else.

#include <cstddef>
#include <vector>

#include "base/units.h"

namespace roofcast {

/// What an open load did to the machine.
struct LoadVerdict {
  bool saturated = false;
  PerSecond offered{};  ///< requests that came
};

/// Counts arrivals, waits and departures over the time of a run, in a fixed number of slices that grow with it.
class LoadWatch {
 public:
  LoadWatch() : slices_(kSlices) {}

  /// A request that ran. Times count from the first that is counted.
  void served(Seconds arrival, Seconds waited, Seconds end);
  /// One that was refused, or given up for the time that it had waited.
  void dropped(Seconds arrival);

  /// Saturated where, of the requests that came after the first third, significantly fewer ended than came, and those
  /// of the last third waited for longer than twice the first third's and half a second, or as much more of them waits
  /// at the end (where some overtake others), or one in twenty was dropped. By chance as many more come as end:
  /// `burstiness` standard deviations of a Poisson process (the variation of the gaps), and `slack`, a share of the
  /// requests, of a load that changes by itself.
  LoadVerdict verdict(double burstiness, double slack) const;

 private:
  static constexpr std::size_t kSlices = 2048;
  struct Slice {
    double came = 0, dropped = 0, started = 0, waited = 0, ended = 0;
  };
  Slice& at(Seconds time);
  /// Sum of a count up to a time; within a slice it rises evenly.
  double until(double Slice::*count, double time) const;
  double time_of(double came) const;  ///< by which so many had come

  std::vector<Slice> slices_;
  double width_ = 1.0 / 1024;  ///< seconds
  double last_arrival_ = 0;
};

}  // namespace roofcast
