#pragma once
// Tables of measured mixtures of experts: engine, kernel, dtype, tokens, hidden_size, inter_size, top_k, experts, tp,
// ep, distribution, latency_us.

#include <string>
#include <vector>

#include "calibrate/kernel_rows.h"
#include "calibrate/operators.h"
#include "hw/kernels/experts/experts_kernel.h"

namespace roofcast {

struct MoeRow {
  RowHeader header;
  MoeShape shape;
};

/// The table's dtype: bfloat16, fp8, fp8_block, nvfp4, w4a16_mxfp4, w4a8_mxfp4_mxfp8, int4_wo; distribution: balanced,
/// uniform or power_law_<exponent>. The kernel's name says what the engine was asked for.
std::vector<MoeRow> read_moe_rows(const CsvTable& table);

/// power_law_1.2. Throws ConfigError at any other name.
Routing power_law_named(const KernelTable& table, std::size_t row, std::string_view name);

KernelOperator moe_operator();

}  // namespace roofcast
