#pragma once
// GPUs with more SMs than the measured one.

#include <algorithm>

#include "hw/cost.h"
#include "hw/gpu_spec.h"
#include "hw/kernel.h"

namespace roofcast {

/// `gpu` with only `used` SMs busy. An SM runs at most at its rate when all SMs of `gpu` are busy or, if higher, at the
/// rate per SM of a GPU of the same architecture that its constants come from, at the clock of `gpu`. Fewer SMs can
/// then reach the peak of the chip.
GpuSpec with_idle_sms(const GpuSpec& gpu, const ConstantsBlock& constants, int used);

/// Kernels split work by the number of SMs and run in whole waves, so fewer SMs can suit a shape better. The constants
/// contain what a library does with the SMs of the measured GPU. On a GPU with more SMs it may leave some idle: tried
/// are the SM count of the measured GPU, 1.25 times, 1.5 times and so on; the same for each GPU in a chain of
/// transfers. `price`: returns the Cost of a call on a GpuSpec.
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
