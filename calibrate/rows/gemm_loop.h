#pragma once
// What the collectors' loops time beside a product: their own quantization, calls and host, and weights found in L2.
// Source of the forms: docs/equations-gemm.md#served-and-benchmarked.

#include "calibrate/rows/gemm.h"
#include "hw/efficiency.h"
#include "hw/kernels/benchmark_loops.h"
#include "hw/kernels/gemm/gemm_kernel.h"

namespace roofcast::calibrate {

/// The loop of a collector that times a format; null: the product alone.
const GemmLoop* gemm_loop_of(Dtype block, Maker collector);
/// What is assumed of it on a GPU that was not measured.
GemmLoopParameters gemm_loop_prior(Dtype block, Maker collector);
/// The constants of that loop, measured or not.
GemmLoopParameters gemm_loop_constants(Dtype block, const Efficiency& efficiency);

/// A row as its header says that it was timed. `loop` counts for Timing::kBenchmark alone.
Seconds gemm_row_time(const GemmRow& row, const MatmulKernel& kernel, const GemmParameters& constants,
                      const GemmLoopParameters& loop, const GpuSpec& gpu, Maker collector);

}  // namespace roofcast::calibrate
