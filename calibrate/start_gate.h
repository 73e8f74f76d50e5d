#pragma once
// Keeps a device busy while the host queues what is to be timed.

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace roofcast::calibrate {

/// How long the device spins before the first timed kernel. If the host took longer, the device waited for it and the
/// sample is invalid; the next spin is twice as long as the host took.
class StartGate {
 public:
  std::uint64_t nanoseconds() const { return nanoseconds_; }
  /// Whether everything was queued before the spin ended. After kMostTries failures in a row it returns true, so that
  /// measuring cannot hang.
  bool held(Seconds queueing) {
    constexpr double kShare = 0.8;  // of the spin, which starts a few microseconds after the host's call
    const double taken = queueing.base() * 1e9;
    if (taken <= kShare * static_cast<double>(nanoseconds_) || ++tries_ >= kMostTries) {
      tries_ = 0;
      return true;
    }
    nanoseconds_ = static_cast<std::uint64_t>(std::clamp(2.0 * taken, 2.0 * kLeast, kMost));
    return false;
  }

 private:
  static constexpr double kLeast = 40e3,
                          kMost = 20e6;  ///< ns: a graph of one node; hundreds of nodes on a slow host
  static constexpr int kMostTries = 5;
  std::uint64_t nanoseconds_ = static_cast<std::uint64_t>(kLeast);
  int tries_ = 0;
};

}  // namespace roofcast::calibrate
