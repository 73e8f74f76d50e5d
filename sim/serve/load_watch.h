#pragma once
// Detects overload: requests arrive faster than they are served, so that latencies only reflect the length of the run.

#include <cstddef>
#include <vector>

#include "base/units.h"

namespace roofcast {

/// Whether an open load saturates the deployment.
struct LoadVerdict {
  bool saturated = false;
  PerSecond offered{};  ///< rate of arriving requests
};

/// Counts arrivals, waits and departures over a run, in a fixed number of time slices that grow with it.
class LoadWatch {
 public:
  LoadWatch() : slices_(kSlices) {}

  /// Records a request that ran. Times count from the first counted request.
  void served(Seconds arrival, Seconds waited, Seconds end);
  /// Records a request that was refused, or that gave up while waiting.
  void dropped(Seconds arrival);

  /// The load is saturated if, of the requests after the first third, significantly fewer ended than arrived, and one
  /// of these holds:
  ///   the last third waited longer than twice the first third plus half a second;
  ///   more requests wait at the end than twice those after the first third plus half a second of arrivals;
  ///   one request in twenty was dropped.
  /// Significant means more than `burstiness` standard deviations of a Poisson process (`burstiness`: the coefficient
  /// of variation of the gaps) and, for a load that varies by itself, more than `slack`, a fraction of the requests.
  LoadVerdict verdict(double burstiness, double slack) const;

 private:
  static constexpr std::size_t kSlices = 2048;
  struct Slice {
    double came = 0, dropped = 0, started = 0, waited = 0, ended = 0;
  };
  Slice& at(Seconds time);
  /// Sum of a count up to `time`; within a slice it rises linearly.
  double until(double Slice::*count, double time) const;
  double time_of(double came) const;  ///< time by which `came` requests had arrived

  std::vector<Slice> slices_;
  double width_ = 1.0 / 1024;  ///< seconds
  double last_arrival_ = 0;
};

}  // namespace roofcast
