// libnvidia-ml.so.1 of the stub.

#include <cstring>

#include "tests/cuda/stub.h"

namespace {
int answer(const char* function) { return roofcast_stub_answer(function, false) == 0 ? 0 : 999; }  // NVML_ERROR_UNKNOWN
int give(unsigned* to, unsigned value, const char* function) {
  *to = value;
  return answer(function);
}
}  // namespace

extern "C" {
int nvmlInit_v2() { return answer(__func__); }
int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) {
  *device = nullptr;
  return answer(__func__);
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::strncpy(text, "580.0", size);
  return answer(__func__);
}
int nvmlDeviceGetClockInfo(void*, int, unsigned* value) { return give(value, 1980, __func__); }
int nvmlDeviceGetTemperature(void*, int, unsigned* value) { return give(value, 40, __func__); }
int nvmlDeviceGetPowerUsage(void*, unsigned* value) { return give(value, 300'000, __func__); }
int nvmlDeviceGetCurrentClocksEventReasons(void*, unsigned long long* value) {
  *value = 0;
  return answer(__func__);
}
}
