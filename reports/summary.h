#pragma once
// What a result that was read says: its own verdict, or what its rows add up to.

#include "reports/result_file.h"
#include "reports/verdict.h"

namespace roofcast::reports {

/// The verdict that the result was written with; of tables and of validations what their rows say. A result without
/// one says so.
ResultVerdict verdict_of(const Result& result);

}  // namespace roofcast::reports
