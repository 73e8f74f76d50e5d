#pragma once
// Tables of measured GEMMs: engine, kernel, dtype, m, n, k, latency_us.

#include <vector>

#include "calibrate/kernel_rows.h"
#include "calibrate/operators.h"
#include "hw/kernels/gemm.h"

namespace roofcast::calibrate {

/// The library whose calls determine the host time of a loop without a CUDA graph.
enum class HostLibrary { kOther, kDeepGemm, kFlashInfer };

struct GemmRow {
  RowHeader header;
  GemmShape shape;
  HostLibrary host_library = HostLibrary::kOther;
  Dtype block = Dtype::kBf16;  ///< the format whose constants it uses
};

/// The table's dtype: bfloat16, fp8, fp8_block, nvfp4, sq (SmoothQuant W8A8), int8_wo and int4_wo (16-bit activations),
/// or the name of any format for both operands.
std::vector<GemmRow> read_gemm_rows(const CsvTable& table);

KernelOperator gemm_operator();

}  // namespace roofcast::calibrate
