#pragma once
// The device that the harness measures: a GPU, the CPU, or a test's imitation.

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/units.h"
#include "calibrate/record.h"

namespace roofcast::calibrate {

/// The point does not fit in free memory.
class OutOfMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The device does not support the format, or a library has no kernel for it.
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The device or a library rejected one point; the other points can be measured.
class Failed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An operator at one shape, with its data on the device.
class Case {
 public:
  virtual ~Case() = default;
  virtual std::string engine() const = 0;  ///< of kernel tables: the library, such as "roofcast-0.1.0"
  virtual std::string kernel() const = 0;
  virtual Flops flops() const = 0;  ///< per call
  virtual Bytes bytes() const = 0;
  /// Runs one call into poisoned outputs and compares them with a CPU reference. Returns a description of the
  /// difference; empty if there is none.
  virtual std::string check() = 0;
  /// Mean time of `repeats` calls back to back, on the device's clock.
  virtual Seconds time(int repeats) = 0;
  /// `count` samples of `repeats` calls without pauses, for a GPU under load. `meanwhile` is called while the later
  /// samples run. `call` is the known time of one call.
  virtual std::vector<Seconds> series(int repeats, int count, [[maybe_unused]] Seconds call,
                                      const std::function<void()>& meanwhile) {
    std::vector<Seconds> out;
    for (int i = 0; i < count; ++i) {
      out.push_back(time(repeats));
      if (i == 3 * count / 4) meanwhile();
    }
    return out;
  }
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual Device device() const = 0;
  virtual DeviceState state() = 0;
  virtual bool throttled() { return state().throttled; }  ///< called after every sample, so it must be fast
  /// Whether clocks and their limits can be read. If not, the harness waits for nothing.
  virtual bool sees_throttling() const { return false; }
  /// Leaves the device idle.
  virtual void wait(Seconds) {}
  /// Throws OutOfMemory, Unsupported or Failed; Unavailable if the device is lost, which ends the run.
  virtual std::unique_ptr<Case> prepare(const Point& point) = 0;
  /// Whether it supports this operator at all. Other operators are removed from the grid.
  virtual bool knows(const std::string& op) const = 0;
  virtual Seconds now() const = 0;  ///< of a steady clock; a test may imitate it
};

}  // namespace roofcast::calibrate
