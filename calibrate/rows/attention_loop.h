#pragma once
// What the collectors' attention loops measure: kernels alone in CUDA graphs or without one, and caches found in L2.
// Source of the equations: docs/equations-attention.md.

#include <algorithm>
#include <span>
#include <vector>

#include "calibrate/looped_kernel.h"
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

/// Fits the block of a kernel to rows that it runs, and that of its loop if rows were timed in it. `price` takes (row,
/// constants, constants of the loop).
template <class Row, class Price, class Group>
std::vector<FittedConstants> fit_with_attention_loop(const Kernel& kernel, Dtype format, const GpuSpec& gpu,
                                                     std::span<const Row> rows, Price price, const FitOptions& options,
                                                     Group group) {
  const Kernel* loop = attention_loop_of(kernel);
  const ConstantsBlock prior = kernel.assumed(gpu, format), prior_loop = assumed_attention_loop(kernel, format, gpu);
  const bool repeated =
      std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.header.timing == Timing::kBenchmark; });
  if (loop == nullptr || !repeated) {
    const auto time = [&](const Row& row, const ConstantsBlock& constants) {
      return price(row, constants, prior_loop);
    };
    return {fit_kernel(kernel, format, prior, rows, time, options, group)};
  }
  const LoopedKernel looped(kernel, *loop);
  const auto time = [&](const Row& row, const ConstantsBlock& both) {
    return price(row, LoopedKernel::kernel_in(both), LoopedKernel::loop_in(both));
  };
  auto [own, beside] = looped.fit(format, looped.block_of(prior, prior_loop), rows, time, options, group);
  return {std::move(own), std::move(beside)};
}

}  // namespace roofcast::calibrate
