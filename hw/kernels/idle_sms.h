#pragma once
// Parts with more SMs than the one that was measured.

#include <algorithm>

#include "hw/cost.h"
#include "hw/gpu_spec.h"
#include "hw/kernel.h"

namespace roofcast {

/// `used` SMs of `gpu`, the rest idle. The peak of one SM is the peak of `gpu` over its SMs. Within one architecture it
/// is that of an SM of `measured` at the clock of `gpu`, where that is more: fewer SMs then reach the peak of the chip.
GpuSpec with_idle_sms(const GpuSpec& gpu, const GpuSpec& measured, int used);

/// Kernels cut work by the number of SMs and run in whole waves, so that a shape may suit fewer SMs better. What a
/// library does with the SMs of the GPU that was measured is in its constants; on a part with more of them it may leave
/// some idle: as many run as that GPU has, or a quarter more, two quarters more, and so on.
/// `price`: the Cost of a call on a GpuSpec.
template <class Price>
Cost with_sms_to_spare(const ConstantsBlock& constants, const GpuSpec& gpu, const Price& price) {
  Cost best = price(gpu);
  if (!constants.carried) return best;
  const GpuSpec& measured = *constants.carried->gpu;
  for (int used = measured.sm_count; used < gpu.sm_count; used += std::max(1, measured.sm_count / 4)) {
    const Cost cost = price(with_idle_sms(gpu, measured, used));
    if (cost.time < best.time) best = cost;
  }
  return best;
}

}  // namespace roofcast
