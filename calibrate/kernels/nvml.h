#pragma once
// Clocks, temperature and throttling from NVIDIA's management library, which is part of the driver. The functions that
// it needs are declared here, because not every toolkit has the header.

#include <string>

#include "calibrate/kernels/library.h"
#include "calibrate/record.h"

namespace roofcast::calibrate::cuda {

class Nvml {
 public:
  /// Reads the GPU at this PCI bus id. If the library is missing or fails, all values are unknown.
  explicit Nvml(const std::string& pci_bus_id);
  DeviceState state() const;
  bool throttled() const;  ///< a separate call, because reading the power is slow
  bool sees_throttling() const { return reasons_ != nullptr; }
  std::string driver_version() const;

 private:
  using Handle = void*;
  Library library_;
  Handle device_ = nullptr;
  int (*driver_)(char*, unsigned) = nullptr;
  int (*clock_)(Handle, int, unsigned*) = nullptr;
  int (*temperature_)(Handle, int, unsigned*) = nullptr;
  int (*power_)(Handle, unsigned*) = nullptr;
  int (*reasons_)(Handle, unsigned long long*) = nullptr;
};

}  // namespace roofcast::calibrate::cuda
