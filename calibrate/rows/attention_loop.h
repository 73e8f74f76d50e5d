#pragma once
// What the collectors' loops time of attention: kernels alone in their graphs or eager, and caches found in L2.
// Source of the forms: docs/equations-attention.md.

#include "calibrate/rows/attention.h"
#include "calibrate/rows/latent_attention.h"
#include "hw/kernels/benchmark_loops.h"
#include "hw/kernels/decode/decode_kernel.h"
#include "hw/kernels/latent/latent_kernel.h"
#include "hw/kernels/prefill/prefill_kernel.h"

namespace roofcast::calibrate {

/// The constants of the loop that times a kernel, measured or not. Null: the kernel alone is timed.
ConstantsBlock attention_loop_constants(const Kernel& kernel, Dtype dtype, const Efficiency& efficiency,
                                        const GpuSpec& gpu);
/// What is assumed of that loop on a GPU that was not measured.
ConstantsBlock assumed_attention_loop(const Kernel& kernel, Dtype dtype, const GpuSpec& gpu);

/// A row as its header says that it was timed. `loop`: the constants of the kernel's loop, which count for
/// Timing::kBenchmark alone.
Seconds attention_row_time(const PrefillRow& row, const attention::PrefillKernel& kernel,
                           const ConstantsBlock& constants, const ConstantsBlock& loop, const GpuSpec& gpu);
Seconds attention_row_time(const DecodeRow& row, const attention::DecodeKernel& kernel, const ConstantsBlock& constants,
                           const ConstantsBlock& loop, const GpuSpec& gpu);
Seconds attention_row_time(const LatentPrefillRow& row, const attention::LatentPrefillKernel& kernel,
                           const ConstantsBlock& constants, const ConstantsBlock& loop, const GpuSpec& gpu);
Seconds attention_row_time(const LatentDecodeRow& row, const attention::LatentDecodeKernel& kernel,
                           const ConstantsBlock& constants, const ConstantsBlock& loop, const GpuSpec& gpu);

/// The same by the kernel that the rules of a calibrated machine name, which may run a prompt as decode.
Seconds attention_row_time(const PrefillRow& row, const Machine& machine);
Seconds attention_row_time(const DecodeRow& row, const Machine& machine);
Seconds attention_row_time(const LatentPrefillRow& row, const Machine& machine);
Seconds attention_row_time(const LatentDecodeRow& row, const Machine& machine);

}  // namespace roofcast::calibrate
