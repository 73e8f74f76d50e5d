#pragma once
// Predictions of a table of measured runs, and how far off they are by group and regime.

#include <optional>
#include <string>
#include <vector>

#include "base/error_summary.h"
#include "sim/plan/measured/measured_runs.h"
#include "sim/plan/measured/measurement_floor.h"

namespace roofcast {

struct RowPrediction {
  std::optional<RunPrediction> prediction;
  std::string note;
};

/// Predicts every row, on all cores; rows of one deployment share their prices.
std::vector<RowPrediction> predict_all(const MeasuredRuns& runs);

/// One line of the accuracy table.
struct AccuracyLine {
  std::string group, metric;
  ErrorSummary errors;
  double spearman = 0;  ///< rank correlation of predicted and measured, NaN where nothing can be ranked
  bool dense = true;
  MeasurementFloor floor = {};  ///< of a group
};

/// By group and metric; then the mean of the groups of 5 rows or more, each counted once ("all groups", "dense
/// groups").
std::vector<AccuracyLine> accuracy_by_group(const MeasuredRuns& runs, const CsvTable& table,
                                            const std::vector<RowPrediction>& rows);
/// The same rows by load: light (at most 4 a GPU in flight), loaded, KV-limited (queues for memory).
std::vector<AccuracyLine> accuracy_by_load(const MeasuredRuns& runs, const CsvTable& table,
                                           const std::vector<RowPrediction>& rows);

}  // namespace roofcast
