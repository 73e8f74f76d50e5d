#pragma once
// The verdict of a result as lines and tables. It is computed once; terminal, page and JSON show the same verdict.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace roofcast::reports {

/// A table of words. On a narrow terminal the columns of the highest ranks are dropped first.
struct VerdictTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  std::vector<int> ranks{};  ///< of the columns; empty: all are always shown
  std::size_t words = 0;     ///< number of last columns that hold words
  std::size_t in_all = 0;    ///< rows before it was shortened; 0: nothing was left out
};

/// One part: a title, lines and a table, each optional. A command is shown as it is typed.
struct VerdictPart {
  std::string title{};
  std::vector<std::string> lines{};
  std::optional<VerdictTable> table{};
  bool command = false;
};

struct ResultVerdict {
  std::vector<VerdictPart> parts;

  /// A part with these lines, which end in '\n'; empty for an empty text.
  VerdictPart& add(std::string title, const std::string& lines);
  VerdictPart& add(std::string title, VerdictTable table);
};

/// For a terminal. Tables with ranks keep to 100 columns unless `wide`.
std::string verdict_text(const ResultVerdict& verdict, bool wide = true);

/// Whether a line reports a problem: MISSED, DOES NOT FIT, SATURATED, "no deployment", "exceeds the limit".
bool is_alarm(std::string_view line);
/// The text with its alarms in red, for a terminal with colours.
std::string with_colors(const std::string& text);

/// [{title, lines: [...], command, table: {columns: [...], rows: [[...]], in_all}}], without the parts that are
/// missing.
nlohmann::ordered_json verdict_json(const ResultVerdict& verdict);
/// Reads what verdict_json wrote; an empty verdict if there is none. Parts of another form are skipped.
ResultVerdict read_verdict(const nlohmann::ordered_json& result);

}  // namespace roofcast::reports
