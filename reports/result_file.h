#pragma once
// Reads results of other commands: JSON, stores of sweeps, tables (CSV) of `validate --out`, `sweep` and
// `simulate --requests-out`.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "reports/result_schema.h"

namespace roofcast::reports {

/// One point of a sweep, one deployment of a plan or one rung of a ladder.
struct ResultPoint {
  std::vector<std::pair<std::string, std::string>> keys{};
  Json result{};
};

struct Result {
  ResultKind kind = ResultKind::kEstimate;
  std::string path{}, label{};
  Json json{};  ///< null for a CSV
  std::optional<CsvTable> table{};
  std::vector<ResultPoint> points{};  ///< sweep, plan, ladder
  std::vector<std::string> notes{};   ///< remarks for the reader: another version, rows left out
  std::string command{};              ///< command that made it, as far as known
};

/// JSON states its kind; a table is recognised by its columns. Throws ConfigError for a file that is missing,
/// incomplete, empty, of unknown kind or schema, or lacks a key of its schema.
Result read_result(const std::string& path);
/// Reads all of them and makes their labels unique.
std::vector<Result> read_results(const std::vector<std::string>& paths);

}  // namespace roofcast::reports
