#pragma once
// Clocks, temperature and throttling from NVIDIA's management library, which comes with the driver. Its few functions
// are declared here: the header does not come with every toolkit.

#include <string>

#include "calibrate/kernels/library.h"
#include "calibrate/record.h"

namespace roofcast::calibrate::cuda {

class Nvml {
 public:
  /// Watches the GPU at this PCI bus id. Where the library is missing or refuses, everything reads as unknown.
  explicit Nvml(const std::string& pci_bus_id);
  DeviceState state() const;
  bool throttled() const;  ///< alone: reading the power takes long
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
