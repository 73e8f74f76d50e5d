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
/// uniform or power_law_<exponent>. The kernel's name says what the engine was asked for.
std::vector<MoeRow> read_moe_rows(const CsvTable& table);

/// The loop that times a kernel without a graph; null: none does.
const KernelOf<ExpertsLoopParameters>* experts_loop_of(const ExpertsKernel& kernel);
/// What is assumed of it on a GPU that was not measured.
ExpertsLoopParameters experts_loop_prior();
/// A row as its header says that it was timed. `loop` counts for Timing::kBenchmark alone.
Seconds experts_row_time(const MoeRow& row, const ExpertsKernel& kernel, const MoeParameters& p,
                         const ExpertsLoopParameters& loop, const GpuSpec& gpu);
/// The same on a machine, under the constants of the kernel that it chooses.
Seconds experts_row_time(const MoeRow& row, const Machine& machine);

/// power_law_1.2. Throws ConfigError at any other name.
Routing power_law_named(const KernelTable& table, std::size_t row, std::string_view name);

KernelOperator moe_operator();

}  // namespace roofcast::calibrate
