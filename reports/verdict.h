#pragma once
// What a result says, in lines and tables. It is made once, beside the numbers; the terminal, the page and the JSON
// show the same.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace roofcast {

/// A table of words. Columns of a higher rank go first where a terminal is too narrow for all.
struct VerdictTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  std::vector<int> ranks{};  ///< of the columns; empty: all are shown
  std::size_t words = 0;     ///< so many last columns hold words
  std::size_t in_all = 0;    ///< rows before it was shortened; 0: nothing was left out
};

/// One part: a title, then lines, then a table; each may be missing. A command is shown as it is typed.
struct VerdictPart {
  std::string title{};
  std::vector<std::string> lines{};
  std::optional<VerdictTable> table{};
  bool command = false;
};

struct ResultVerdict {
  std::vector<VerdictPart> parts;

  /// A part of these lines, which end in '\n'; nothing for an empty text.
  VerdictPart& add(std::string title, const std::string& lines);
  VerdictPart& add(std::string title, VerdictTable table);
};

/// For a terminal; tables with ranks keep to 100 columns unless `wide`.
std::string verdict_text(const ResultVerdict& verdict, bool wide = true);

/// Whether a line says that something is wrong: MISSED, DOES NOT FIT, SATURATED, "no deployment", "exceeds the limit".
bool is_alarm(std::string_view line);
/// The text with its alarms in red, for a terminal that shows colours.
std::string with_colors(const std::string& text);

/// [{title, lines: [...], command, table: {columns: [...], rows: [[...]], in_all}}], without what a part has not.
nlohmann::ordered_json verdict_json(const ResultVerdict& verdict);
/// What verdict_json wrote; an empty verdict where there is none. What has another form is left out.
ResultVerdict read_verdict(const nlohmann::ordered_json& result);

}  // namespace roofcast
