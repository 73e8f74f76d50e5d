#include "hw/kernels/idle_sms.h"

#include <algorithm>

namespace roofcast {

GpuSpec with_idle_sms(const GpuSpec& gpu, const ConstantsBlock& constants, int used) {
  GpuSpec out = gpu;
  out.sm_count = used;
  for (std::size_t i = 0; i < kDtypeCount; ++i) {
    FlopsPerSecond one = gpu.dense[i] / gpu.sm_count;
    for (const CarriedFrom* from = constants.carried.get(); from != nullptr; from = from->measured.carried.get()) {
      const GpuSpec& other = *from->gpu;
      if (gpu.architecture != other.architecture || other.boost_clock <= PerSecond{}) continue;
      one = std::max(one, gpu.boost_clock / other.boost_clock * other.dense[i] / other.sm_count);
    }
    out.dense[i] = std::min(gpu.dense[i], used * one);
  }
  return out;
}

}  // namespace roofcast
