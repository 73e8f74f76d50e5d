#pragma once
// Predictions beside a table of measured kernel times.

#include <string>
#include <vector>

#include "base/csv.h"
#include "base/error.h"
#include "base/error_summary.h"
#include "base/units.h"
#include "calibrate/operators.h"

namespace roofcast::calibrate {

struct ErrorGroup {
  std::string name;  ///< "vllm-0.24.0 fp8 CutlassFP8ScaledMMLinearKernel", last of all "all"
  ErrorSummary errors;
  double coverage = 0;  ///< part of the rows within the 90 % interval of their prediction
};

struct KernelValidation {
  const KernelOperator* op = nullptr;
  std::vector<Seconds> predicted;   ///< one a row, timed as it was; 0 where it is passed over
  std::vector<ErrorGroup> groups;   ///< by engine and the operator's groups, sorted; empty when the table has no times
  std::vector<ConfigError> faults;  ///< of the rows passed over: missing, not a number, of a format not computed
};

/// Predicts every row of `table`, as `op` or, when null, as the operator that has its columns. Throws the first fault
/// where every row has one.
KernelValidation validate_kernels(const CsvTable& table, const BenchedGpu& gpu, const KernelOperator* op = nullptr);

/// The table with a last column `predicted_us`.
std::string with_predictions(const CsvTable& table, const std::vector<Seconds>& predicted);

}  // namespace roofcast::calibrate
