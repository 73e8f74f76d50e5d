#pragma once
// What the harness measures on: a GPU, the CPU, or something made up by a test.

#include <memory>
#include <stdexcept>
#include <string>

#include "base/units.h"
#include "calibrate/record.h"

namespace roofcast {

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
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual Device device() const = 0;
  virtual DeviceState state() = 0;
  virtual bool throttled() { return state().throttled; }  ///< asked after every sample: quick
  /// Throws OutOfMemory, Unsupported; Unavailable when the device is lost, which ends the run.
  virtual std::unique_ptr<Case> prepare(const Point& point) = 0;
  /// Can it run this operator at all? A grid is cut down to those.
  virtual bool knows(const std::string& op) const = 0;
  virtual Seconds now() const = 0;  ///< of a steady clock; a test's own may be made up
};

}  // namespace roofcast
