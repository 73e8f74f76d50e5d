#pragma once
// Predictions of a table of measured runs, and their errors by group and load.

#include <functional>
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

/// Predicts every row for which `wanted` holds (null: all), on all cores. Rows of one deployment share step prices.
std::vector<RowPrediction> predict_all(const MeasuredRuns& runs,
                                       const std::function<bool(const MeasuredRun&)>& wanted = nullptr);

/// One line of the accuracy table.
struct AccuracyLine {
  std::string group, metric;
  ErrorSummary errors;
  double spearman = 0;  ///< rank correlation of predicted and measured; NaN if nothing can be ranked
  bool dense = true;
  MeasurementFloor floor = {};  ///< noise floor of a group
};

/// By group and metric; then the mean of the groups with at least 5 rows, each counted once ("all groups", "dense
/// groups").
std::vector<AccuracyLine> accuracy_by_group(const MeasuredRuns& runs, const CsvTable& table,
                                            const std::vector<RowPrediction>& rows);
/// By the result of `group_of` and by metric; then the mean of those with at least 5 rows, called `mean`.
std::vector<AccuracyLine> accuracy_by(const MeasuredRuns& runs, const CsvTable& table,
                                      const std::vector<RowPrediction>& rows,
                                      const std::function<std::string(const MeasuredRun&)>& group_of,
                                      const std::string& mean);
/// The same rows by load: light (at most 4 requests in flight per GPU), loaded, KV-limited (requests wait for memory).
std::vector<AccuracyLine> accuracy_by_load(const MeasuredRuns& runs, const CsvTable& table,
                                           const std::vector<RowPrediction>& rows);

}  // namespace roofcast
