#pragma once
// Compares predictions with a table of measured kernel times.

#include <string>
#include <vector>

#include "base/csv.h"
#include "base/error.h"
#include "base/error_summary.h"
#include "base/units.h"
#include "calibrate/operators.h"

namespace roofcast::calibrate {

struct ErrorGroup {
  std::string name;  ///< "vllm-0.24.0 fp8 CutlassFP8ScaledMMLinearKernel"; the last one is "all"
  ErrorSummary errors;
  double coverage = 0;  ///< share of the rows within the 90 % interval of their prediction
};

struct KernelValidation {
  const KernelOperator* op = nullptr;
  std::vector<Seconds> predicted;   ///< one per row, under the row's timing; 0: skipped
  std::vector<ErrorGroup> groups;   ///< by engine and the operator's groups, sorted; empty if the table has no times
  std::vector<ConfigError> faults;  ///< of skipped rows: missing, not a number, or of an unsupported format
};

/// Predicts every row of `table` as `op`, or, if null, as the operator with its columns. Throws the first fault if
/// every row has one.
KernelValidation validate_kernels(const CsvTable& table, const BenchmarkedGpu& gpu, const KernelOperator* op = nullptr);

/// The table with an additional last column `predicted_us`.
std::string with_predictions(const CsvTable& table, const std::vector<Seconds>& predicted);

}  // namespace roofcast::calibrate
