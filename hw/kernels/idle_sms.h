#pragma once
// Parts with more SMs than the one that was measured.

#include <algorithm>

#include "hw/cost.h"
#include "hw/gpu_spec.h"
#include "hw/kernel.h"

namespace roofcast {

/// `used` SMs of `gpu`, the rest idle. An SM runs at most at the rate of one of `gpu` with all of them busy or, where
/// that is more, of one of the GPUs of its architecture whose constants it has, at the clock of `gpu`: fewer SMs then
/// reach the peak of the chip.
GpuSpec with_idle_sms(const GpuSpec& gpu, const ConstantsBlock& constants, int used);

/// Kernels cut work by the number of SMs and run in whole waves, so that a shape may suit fewer SMs better. What a
/// library does with the SMs of the GPU that was measured is in its constants; on a part with more of them it may leave
/// some idle: as many run as that GPU has, or a quarter more, two quarters more, and so on; the same of each GPU on the
/// way to `gpu`, if constants were carried over more than once.
/// `price`: the Cost of a call on a GpuSpec.
template <class Price>
Cost with_sms_to_spare(const ConstantsBlock& constants, const GpuSpec& gpu, const Price& price) {
  Cost best = price(gpu);
  for (const CarriedFrom* from = constants.carried.get(); from != nullptr; from = from->measured.carried.get()) {
    const int sms = from->gpu->sm_count;
    for (int used = sms; used < gpu.sm_count; used += std::max(1, sms / 4)) {
      const Cost cost = price(with_idle_sms(gpu, constants, used));
      if (cost.time < best.time) best = cost;
    }
  }
  return best;
}

}  // namespace roofcast
