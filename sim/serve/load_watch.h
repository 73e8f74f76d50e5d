#pragma once
// Detects that requests come faster than they are served: then latencies only show how long the run was.

#include <cstddef>
#include <vector>

#include "base/units.h"

namespace roofcast {

/// Whether an open load saturates the machine.
struct LoadVerdict {
  bool saturated = false;
  PerSecond offered{};  ///< rate of arriving requests
};

/// Counts arrivals, waits and departures over a run, in a fixed number of time slices that grow with it.
class LoadWatch {
 public:
  LoadWatch() : slices_(kSlices) {}

  /// A request that ran. Times count from the first counted request.
  void served(Seconds arrival, Seconds waited, Seconds end);
  /// One that was refused, or gave up after waiting.
  void dropped(Seconds arrival);

  /// Saturated if, of the requests after the first third, significantly fewer ended than came, and one of these holds:
  ///   the last third waited longer than twice the first third plus half a second;
  ///   more wait at the end than twice those after the first third plus half a second of arrivals (some overtake);
  ///   one in twenty was dropped.
  /// Significant is beyond `burstiness` standard deviations of a Poisson process (the variation of the gaps) and, for a
  /// load that changes by itself, beyond `slack`, a share of the requests.
  LoadVerdict verdict(double burstiness, double slack) const;

 private:
  static constexpr std::size_t kSlices = 2048;
  struct Slice {
    double came = 0, dropped = 0, started = 0, waited = 0, ended = 0;
  };
  Slice& at(Seconds time);
  /// Sum of a count up to a time; within a slice it rises evenly.
  double until(double Slice::*count, double time) const;
  double time_of(double came) const;  ///< time by which `came` requests had arrived

  std::vector<Slice> slices_;
  double width_ = 1.0 / 1024;  ///< seconds
  double last_arrival_ = 0;
};

}  // namespace roofcast
