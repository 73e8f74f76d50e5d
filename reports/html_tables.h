#pragma once
#include <span>
#include <string>
#include <vector>

#include "reports/result_file.h"

namespace roofcast::reports {

/// Scrolls separately if it is wider than the page; at most 300 rows.
std::string html_table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);

/// Compares metrics of the results; empty if no result has any.
std::string headline_table(std::span<const Result> results);
/// Operators of an estimate, points of a sweep or plan, errors by group of a validation; empty for the others.
std::string detail_table(const Result& result);

}  // namespace roofcast::reports
