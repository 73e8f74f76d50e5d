#pragma once
// Results that other commands wrote, read back: JSON, stores of sweeps, tables (CSV) of `validate --out`, of `sweep`
// and of `simulate --requests-out`.

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
  std::vector<std::string> notes{};   ///< what the reader should know: another version, rows left out
  std::string command{};              ///< that made it, as far as its keys tell
};

/// A JSON says its kind; a table is known by its columns. Throws ConfigError for a file that is missing, half written,
/// empty, of no known kind or schema, or without a key that its schema has.
Result read_result(const std::string& path);
/// All of them, with labels that differ.
std::vector<Result> read_results(const std::vector<std::string>& paths);

}  // namespace roofcast::reports
