#pragma once
// What the harness measures on: a GPU, the CPU, or something made up by a test.

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/units.h"
#include "calibrate/record.h"

namespace roofcast::calibrate {

/// The point does not fit the memory that is free.
class OutOfMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The device has no such format, or a library none of its kernels for it.
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The device or a library refused one point; the others can go on.
class Failed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An operator at one shape, its data on the device.
class Case {
 public:
  virtual ~Case() = default;
  virtual std::string engine() const = 0;  ///< whose kernel, as the column of kernel tables: "roofcast-0.1.0"
  virtual std::string kernel() const = 0;
  virtual Flops flops() const = 0;  ///< of one call
  virtual Bytes bytes() const = 0;
  /// Runs it once into poisoned outputs and compares them with a reference on the CPU: empty, or what differs.
  virtual std::string check() = 0;
  /// The time of `repeats` calls back to back on the device's clock, over `repeats`.
  virtual Seconds time(int repeats) = 0;
  /// `count` samples of `repeats` calls with nothing between them, as a GPU under load works; `meanwhile` is called
  /// while the later ones run. `call` is what one call is known to take.
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
  virtual bool throttled() { return state().throttled; }  ///< asked after every sample: quick
  /// Do clocks and their limits show? Where they do not, nothing is waited for.
  virtual bool sees_throttling() const { return false; }
  /// Leaves the device idle.
  virtual void wait(Seconds) {}
  /// Throws OutOfMemory, Unsupported, Failed; Unavailable when the device is lost, which ends the run.
  virtual std::unique_ptr<Case> prepare(const Point& point) = 0;
  /// Can it run this operator at all? A grid is cut down to those.
  virtual bool knows(const std::string& op) const = 0;
  virtual Seconds now() const = 0;  ///< of a steady clock; a test's own may be made up
};

}  // namespace roofcast::calibrate
