#pragma once
// Plots of measurements and of fitted ceilings.

#include <vector>

#include "calibrate/ceilings.h"
#include "calibrate/record_tables.h"
#include "calibrate/validate.h"
#include "reports/chart.h"

namespace roofcast::cli {

/// Bandwidth by working set and by resident blocks, GEMM rate by m, bytes per second of decode attention by context;
/// and with predictions (one validation per table, or none), predicted / measured by m.
std::vector<reports::Chart> measurement_charts(const calibrate::RecordFile& file,
                                               const std::vector<calibrate::MeasuredTable>& tables,
                                               const std::vector<calibrate::KernelValidation>& found);

/// Fractions of the peaks as bars.
std::vector<reports::Chart> constants_charts(const std::vector<calibrate::Ceiling>& ceilings);

}  // namespace roofcast::cli
