#pragma once
// Tables of measured GEMMs: engine, kernel, dtype, m, n, k, latency_us.

#include <vector>

#include "calibrate/kernel_rows.h"
#include "calibrate/operators.h"
#include "hw/kernels/gemm.h"

namespace roofcast::calibrate {

/// Whose calls set the pace of the host, where a loop is timed without a graph.
enum class HostPace { kOther, kDeepGemm, kFlashInfer };

struct GemmRow {
  RowHeader header;
  GemmShape shape;
  HostPace pace = HostPace::kOther;
  Dtype block = Dtype::kBf16;  ///< whose constants it takes
};

/// The table's dtype: bfloat16, fp8, fp8_block, nvfp4, sq (SmoothQuant W8A8), int8_wo and int4_wo (16-bit
/// activations), or any format's name, for both operands.
std::vector<GemmRow> read_gemm_rows(const CsvTable& table);

KernelOperator gemm_operator();

}  // namespace roofcast::calibrate
