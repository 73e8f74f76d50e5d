#pragma once
// How well the measurements know themselves: what no prediction can be nearer than, and what interpolating a run
// between its own neighbours misses it by.

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/csv.h"
#include "sim/plan/measured/measured_runs.h"

namespace roofcast {

/// Errors are means of |estimate / measured - 1|; 0 where there are no rows.
struct MeasurementFloor {
  std::size_t repeated = 0;  ///< rows with another of the same settings, on any day and under any version of the engine
  double repeats = 0;        ///< the least error over them of any prediction that is the same for the same settings
  /// Rows with a neighbour on both sides, in requests in flight, batch, rate or output tokens.
  std::size_t between = 0;
  /// Error over them of interpolating between these (repeats: their mean), logarithm over logarithm.
  double neighbours = 0;
};

/// The least mean of |c / value - 1| over the choices of c: one of the values, the median when each weighs 1 / value.
double least_error(const std::vector<double>& values);

/// By group and metric, as accuracy_by_group. Settings are all columns but the run's name, day, version and source,
/// what was measured, and predictions of an earlier validation.
std::map<std::pair<std::string, std::string>, MeasurementFloor> measurement_floors(const MeasuredRuns& runs,
                                                                                   const CsvTable& table);

}  // namespace roofcast
