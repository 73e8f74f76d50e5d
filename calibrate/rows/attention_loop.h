#pragma once
// What the collectors' attention loops measure: kernels alone in CUDA graphs or without one, and caches found in L2.
// Source of the equations: docs/equations-attention.md.

#include "calibrate/rows/attention.h"
#include "calibrate/rows/latent_attention.h"
#include "hw/kernels/benchmark_loops.h"
#include "hw/kernels/decode/decode_kernel.h"
#include "hw/kernels/latent/latent_kernel.h"
#include "hw/kernels/prefill/prefill_kernel.h"

namespace roofcast::calibrate {

/// The constants of the loop around a kernel, measured or assumed. Null: only the kernel is timed.
ConstantsBlock attention_loop_constants(const Kernel& kernel, Dtype dtype, const Efficiency& efficiency,
                                        const GpuSpec& gpu);
/// The assumed constants of that loop on an unmeasured GPU.
ConstantsBlock assumed_attention_loop(const Kernel& kernel, Dtype dtype, const GpuSpec& gpu);

/// The time of a row under the row's timing. `loop`: the constants of the kernel's loop, used only for
/// Timing::kBenchmark.
Seconds attention_row_time(const PrefillRow& row, const attention::PrefillKernel& kernel,
                           const ConstantsBlock& constants, const ConstantsBlock& loop, const GpuSpec& gpu);
Seconds attention_row_time(const DecodeRow& row, const attention::DecodeKernel& kernel, const ConstantsBlock& constants,
                           const ConstantsBlock& loop, const GpuSpec& gpu);
Seconds attention_row_time(const LatentPrefillRow& row, const attention::LatentPrefillKernel& kernel,
                           const ConstantsBlock& constants, const ConstantsBlock& loop, const GpuSpec& gpu);
Seconds attention_row_time(const LatentDecodeRow& row, const attention::LatentDecodeKernel& kernel,
                           const ConstantsBlock& constants, const ConstantsBlock& loop, const GpuSpec& gpu);

/// The same for the kernel that the rules of a calibrated machine choose, which may run a prompt as decode.
Seconds attention_row_time(const PrefillRow& row, const Machine& machine);
Seconds attention_row_time(const DecodeRow& row, const Machine& machine);
Seconds attention_row_time(const LatentPrefillRow& row, const Machine& machine);
Seconds attention_row_time(const LatentDecodeRow& row, const Machine& machine);

}  // namespace roofcast::calibrate
