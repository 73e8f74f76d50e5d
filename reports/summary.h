#pragma once
// The verdict of a result that was read: its own, or a summary of its rows.

#include "reports/result_file.h"
#include "reports/verdict.h"

namespace roofcast::reports {

/// The verdict stored in the result; for tables and validations a summary of their rows. A result without one says so.
ResultVerdict verdict_of(const Result& result);

}  // namespace roofcast::reports
