#pragma once
// The operators that have tables of measurements: one visible table, one line each in operators.cpp.

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "calibrate/fit.h"
#include "calibrate/gpu_file.h"
#include "calibrate/kernel_rows.h"
#include "hw/cost.h"
#include "hw/efficiency.h"
#include "hw/gpu_spec.h"

namespace roofcast {

/// One GPU under every engine family: a table has rows of several.
struct BenchedGpu {
  GpuSpec spec;
  Efficiency trtllm{KernelFamily::kTrtllm}, vllm{KernelFamily::kVllm}, sglang{KernelFamily::kSglang};
  Fidelity fidelity = Fidelity::kCalibrated;

  const Efficiency& of(KernelFamily family) const {
    return family == KernelFamily::kTrtllm ? trtllm : family == KernelFamily::kVllm ? vllm : sglang;
  }
  /// Rows that are no engine's own (NCCL, cuBLASLt, ours) take vLLM's constants.
  Machine machine(const RowHeader& row) const {
    return {.gpu = &spec, .efficiency = &of(family_of(row.maker).value_or(KernelFamily::kVllm)), .fidelity = fidelity};
  }
};
/// The GPU file read under every family.
BenchedGpu load_benched_gpu(const ConfigTree& tree, Fidelity fidelity = Fidelity::kCalibrated);

/// Of one row: its time, timed as the row was, and the relative standard deviation that its constants leave
/// unexplained.
struct Prediction {
  Seconds time{};
  double discrepancy = 0;
};
/// What the constants of `dtype` leave unexplained, else those of bf16, else what is assumed of priors; of shapes of
/// their own kernel or of another.
inline double discrepancy_of(const Efficiency& e, const Kernel& kernel, Dtype dtype, bool other_kernel = false) {
  return evidence_of(e, kernel, dtype).discrepancy(other_kernel);
}

/// One operator with measurements.
struct KernelOperator {
  std::string_view name;                      ///< --op NAME
  std::string_view help;                      ///< one line
  std::span<const std::string_view> columns;  ///< of its table, beside engine, kernel and latency_us
  std::span<const std::string_view> groups;   ///< columns that errors are reported by, after engine
  /// Every row in turn; no time: the row is passed over. Throws ConfigError at a row that cannot be read or computed.
  std::vector<Prediction> (*predict)(const CsvTable& table, const BenchedGpu& gpu);
  /// Constants from the rows that time what one family runs, a block a format. Other rows are passed over.
  std::vector<FittedConstants> (*fit)(const CsvTable& table, const GpuSpec& gpu, KernelFamily family,
                                      const FitOptions& options);
};

std::span<const KernelOperator> kernel_operators();
/// Throws ConfigError `origin: unknown operator 'x'; nearest ...`.
const KernelOperator& find_operator(std::string_view name, const Mark& origin);
/// The operator whose columns the table has, the one with most of them when several fit. Throws ConfigError.
const KernelOperator& operator_of(const CsvTable& table);

}  // namespace roofcast
