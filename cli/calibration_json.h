#pragma once
// Output of `calibrate show`, `fit` and `host` as results of kind "calibration".

#include <string>
#include <vector>

#include "calibrate/ceilings.h"
#include "calibrate/shared_kernels.h"
#include "calibrate/validate.h"
#include "reports/result_schema.h"
#include "sim/plan/measured/host_fit.h"

namespace roofcast::cli {

/// {kind, schema, of}
reports::Json calibration_head(const char* of);
reports::Json ceilings_json(const std::vector<calibrate::Ceiling>& ceilings);
reports::Json constants_json(const std::vector<calibrate::ShownBlock>& blocks);
reports::Json kernel_errors_json(const std::vector<calibrate::KernelValidation>& found);
reports::Json fits_json(const std::vector<calibrate::FittedSet>& all);
/// {..., "loss", "host": [{cost, value, unit, standing}], "runs"}
reports::Json host_fit_json(const HostFit& fit);

/// The result as JSON, or its list `points` as CSV.
std::string calibration_text(const reports::Json& result, const char* points, const std::string& format);

}  // namespace roofcast::cli
