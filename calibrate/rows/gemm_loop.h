#pragma once
// What the collectors' GEMM loops measure besides the GEMM: quantization, plug-in calls, host time, and weights found
// in L2. Source of the equations: docs/equations-gemm.md#serving-and-benchmarks.

#include "calibrate/rows/gemm.h"
#include "hw/efficiency.h"
#include "hw/kernels/benchmark_loops.h"
#include "hw/kernels/gemm/gemm_kernel.h"

namespace roofcast::calibrate {

/// The loop in which a collector times a format; null: only the GEMM is timed.
const GemmLoop* gemm_loop_of(Dtype block, Maker collector);
/// The assumed constants of that loop on an unmeasured GPU.
GemmLoopParameters gemm_loop_prior(Dtype block, Maker collector);
/// The constants of that loop, measured or assumed.
GemmLoopParameters gemm_loop_constants(Dtype block, const Efficiency& efficiency);

/// The time of a row under the row's timing. `loop` is used only for Timing::kBenchmark.
Seconds gemm_row_time(const GemmRow& row, const MatmulKernel& kernel, const GemmParameters& constants,
                      const GemmLoopParameters& loop, const GpuSpec& gpu, Maker collector);

}  // namespace roofcast::calibrate
