#pragma once
// Noise floor of the measurements: the error that no prediction can avoid, and the error of interpolating a run between
// its neighbours.

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/csv.h"
#include "sim/plan/measured/measured_runs.h"

namespace roofcast {

/// Errors are means of |estimate / measured - 1|; 0 without rows.
struct MeasurementFloor {
  std::size_t repeated = 0;  ///< rows that share all settings with another row, on any day and any engine version
  double repeats = 0;        ///< lowest error on them of any function of the settings
  /// Rows with neighbours on both sides, in requests in flight, batch, rate or output tokens.
  std::size_t between = 0;
  /// Error on them of log-log interpolation between these (repeats: their mean).
  double neighbours = 0;
};

/// The lowest mean |c / value - 1| over all c, reached at one of the values: the median with weights 1 / value.
double least_error(const std::vector<double>& values);

/// By group and metric, as accuracy_by_group. Settings are all columns except the run's name, day, version and source,
/// the measurements, and predictions of an earlier validation.
std::map<std::pair<std::string, std::string>, MeasurementFloor> measurement_floors(const MeasuredRuns& runs,
                                                                                   const CsvTable& table);

}  // namespace roofcast
