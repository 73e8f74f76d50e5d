#include "hw/kernels/idle_sms.h"

#include <algorithm>

namespace roofcast {

GpuSpec with_idle_sms(const GpuSpec& gpu, const GpuSpec& measured, int used) {
  GpuSpec out = gpu;
  out.sm_count = used;
  const bool same = gpu.architecture == measured.architecture && measured.boost_clock > PerSecond{};
  const double clock = same ? gpu.boost_clock / measured.boost_clock : 0.0;
  for (std::size_t i = 0; i < kDtypeCount; ++i) {
    const FlopsPerSecond own = gpu.dense[i] / gpu.sm_count, there = clock * measured.dense[i] / measured.sm_count;
    out.dense[i] = std::min(gpu.dense[i], used * std::max(own, there));
  }
  return out;
}

}  // namespace roofcast
