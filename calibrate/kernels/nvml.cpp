#include "calibrate/kernels/nvml.h"

#include <array>

namespace roofcast::calibrate::cuda {
namespace {

// NVML API reference: nvmlClockType_t, nvmlTemperatureSensors_t, nvmlClocksEventReasons.
constexpr int kSmClock = 1, kMemoryClock = 2, kGpuSensor = 0;
constexpr unsigned long long kPowerCap = 0x4, kHardwareSlowdown = 0x8, kHeat = 0x20, kHardwareHeat = 0x40,
                             kPowerBrake = 0x80;
constexpr unsigned long long kThrottles = kPowerCap | kHardwareSlowdown | kHeat | kHardwareHeat | kPowerBrake;

}  // namespace

Nvml::Nvml(const std::string& pci_bus_id) : library_({"libnvidia-ml.so.1"}) {
  int (*init)() = nullptr;
  int (*by_bus)(const char*, Handle*) = nullptr;
  library_.find("nvmlInit_v2", init);
  library_.find("nvmlDeviceGetHandleByPciBusId_v2", by_bus);
  library_.find("nvmlSystemGetDriverVersion", driver_);
  if (!init || !by_bus || init() != 0) {
    driver_ = nullptr;
    return;
  }
  if (by_bus(pci_bus_id.c_str(), &device_) != 0) return;
  library_.find("nvmlDeviceGetClockInfo", clock_);
  library_.find("nvmlDeviceGetTemperature", temperature_);
  library_.find("nvmlDeviceGetPowerUsage", power_);
  library_.find("nvmlDeviceGetCurrentClocksEventReasons", reasons_);
  if (!reasons_) library_.find("nvmlDeviceGetCurrentClocksThrottleReasons", reasons_);  // its name before driver 535
}

DeviceState Nvml::state() const {
  DeviceState state;
  unsigned value = 0;
  if (clock_ && clock_(device_, kSmClock, &value) == 0) state.sm_clock_mhz = value;
  if (clock_ && clock_(device_, kMemoryClock, &value) == 0) state.memory_clock_mhz = value;
  if (temperature_ && temperature_(device_, kGpuSensor, &value) == 0) state.temperature_c = value;
  if (power_ && power_(device_, &value) == 0) state.power_w = value / 1000.0;
  state.throttled = throttled();
  return state;
}

bool Nvml::throttled() const {
  unsigned long long reasons = 0;
  return reasons_ && reasons_(device_, &reasons) == 0 && (reasons & kThrottles) != 0;
}

std::string Nvml::driver_version() const {
  std::array<char, 96> text{};
  return driver_ && driver_(text.data(), static_cast<unsigned>(text.size())) == 0 ? text.data() : "";
}

}  // namespace roofcast::calibrate::cuda
