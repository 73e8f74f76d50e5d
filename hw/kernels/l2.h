#pragma once
#include <algorithm>

#include "hw/gpu_spec.h"

namespace roofcast {

/// What an SM reads from L2. Measured times of kernels whose data stay in L2 give 48 GB/s per SM on H100, H200 and B200
/// (docs/equations-state.md), although their memory bandwidths differ by a factor of 2.4.
inline constexpr double kL2BytesPerSecondPerSm = 48e9;
/// A working set up to this share of L2 stays there from one kernel to the next.
inline constexpr double kL2Usable = 0.7;

/// Rate in B/s of a kernel that reads or writes `traffic` that was just used before: at least L2's rate if it fits.
inline double rate_with_l2(double sms, Bytes l2_cache, Bytes traffic, double memory_rate) {
  if (traffic.base() >= kL2Usable * l2_cache.base()) return memory_rate;
  return std::max(memory_rate, sms * kL2BytesPerSecondPerSm);
}
inline double rate_with_l2(const GpuSpec& gpu, Bytes traffic, double memory_rate) {
  return rate_with_l2(gpu.sm_count, gpu.l2_cache, traffic, memory_rate);
}

}  // namespace roofcast
