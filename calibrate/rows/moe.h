#pragma once
// Tables of measured mixtures of experts: engine, kernel, dtype, tokens, hidden_size, inter_size, top_k, experts, tp,
// ep, distribution, latency_us.

#include <string>
#include <vector>

#include "calibrate/kernel_rows.h"
#include "calibrate/operators.h"
#include "hw/kernels/benchmark_loops.h"
#include "hw/kernels/experts/experts_kernel.h"

namespace roofcast::calibrate {

struct MoeRow {
  RowHeader header;
  MoeShape shape;
};

/// The table's dtype: bfloat16, fp8, fp8_block, nvfp4, w4a16_mxfp4, w4a8_mxfp4_mxfp8, int4_wo; distribution: balanced,
/// uniform or power_law_<exponent>. The kernel's name says which kernel the engine was configured to use.
std::vector<MoeRow> read_moe_rows(const CsvTable& table);

/// The loop that times a kernel without a CUDA graph; null if there is none.
const KernelOf<ExpertsLoopParameters>* experts_loop_of(const ExpertsKernel& kernel);
/// The assumed constants of that loop on an unmeasured GPU.
ExpertsLoopParameters experts_loop_prior();
/// The time of a row under the row's timing. `loop` is used only for Timing::kBenchmark.
Seconds experts_row_time(const MoeRow& row, const ExpertsKernel& kernel, const MoeParameters& p,
                         const ExpertsLoopParameters& loop, const GpuSpec& gpu);
/// The same on a machine, with the constants of the kernel that it chooses.
Seconds experts_row_time(const MoeRow& row, const Machine& machine);

/// Parses power_law_1.2. Throws ConfigError for any other name.
Routing power_law_named(const KernelTable& table, std::size_t row, std::string_view name);

KernelOperator moe_operator();

}  // namespace roofcast::calibrate
