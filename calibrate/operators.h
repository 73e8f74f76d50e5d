#pragma once
// The operators with tables of measurements; operators.cpp lists them, one per line.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "calibrate/fit.h"
#include "calibrate/gpu_file.h"
#include "calibrate/kernel_rows.h"
#include "hw/cost.h"
#include "hw/efficiency.h"
#include "hw/gpu_spec.h"

namespace roofcast::calibrate {

using BySet = std::map<std::string, Efficiency, std::less<>>;  ///< constants by name of their kernel set
BySet nothing_measured();
/// One GPU with the constants of every kernel set, because a table may have rows of several.
struct BenchmarkedGpu {
  GpuSpec spec;
  BySet by_set = nothing_measured();
  Fidelity fidelity = Fidelity::kCalibrated;

  /// Throws ConfigError for an unknown kernel set.
  const Efficiency& of(std::string_view kernels) const;
  /// Rows without an engine (NCCL, cuBLASLt, our own kernels) use vLLM's constants.
  Machine machine(const RowHeader& row) const {
    const std::string kernels = row.kernels();
    return {.gpu = &spec, .efficiency = &of(kernels.empty() ? kDefaultKernels : kernels), .fidelity = fidelity};
  }
};
/// Reads the GPU file for every kernel set.
BenchmarkedGpu load_benchmarked_gpu(const ConfigTree& tree, Fidelity fidelity = Fidelity::kCalibrated);

/// The predicted time of a row under the row's timing, and the relative standard deviation of its constants' residual.
struct Prediction {
  Seconds time{};
  double discrepancy = 0;
};
/// The residual of the constants of `dtype`, else of bf16, else that assumed for priors; for shapes of their own kernel
/// or of another.
inline double discrepancy_of(const Efficiency& e, const Kernel& kernel, Dtype dtype, bool other_kernel = false) {
  return evidence_of(e, kernel, dtype).discrepancy(other_kernel);
}

/// One operator with measurements.
struct KernelOperator {
  std::string_view name;                      ///< --op NAME
  std::string_view help;                      ///< one line
  std::span<const std::string_view> columns;  ///< of its table, besides engine, kernel and latency_us
  std::span<const std::string_view> groups;   ///< columns by which errors are reported, after engine
  /// Predicts every row, in order; a time of 0 means that the row is skipped. Throws ConfigError for a row that cannot
  /// be read or computed.
  std::vector<Prediction> (*predict)(const CsvTable& table, const BenchmarkedGpu& gpu);
  /// Fits constants to the rows of one kernel set, one block per format. Other rows are skipped.
  std::vector<FittedConstants> (*fit)(const CsvTable& table, const GpuSpec& gpu, const KernelRules& rules,
                                      const FitOptions& options);
};

std::span<const KernelOperator> kernel_operators();
/// Throws ConfigError `origin: unknown operator 'x'; nearest ...`.
const KernelOperator& find_operator(std::string_view name, const SourceLocation& origin);
/// The operator whose columns the table has; if several match, the one with the most columns. Throws ConfigError.
const KernelOperator& operator_of(const CsvTable& table);

}  // namespace roofcast::calibrate
