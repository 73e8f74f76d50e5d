#include "reports/lecture_report.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/catalog_report.h"
#include "reports/result_schema.h"
#include "reports/table.h"

namespace roofcast::reports {
namespace {

using Cell = LectureCell;

std::string text_of(const Cell& cell) {
  if (!cell.is_number) return cell.text;
  const bool whole = std::abs(cell.number) < 1e9 && cell.number == std::floor(cell.number);
  return whole ? fmt::format("{:.0f}", cell.number) : significant(cell.number);
}
Json json_of(const Cell& cell) { return cell.is_number ? Json(cell.number) : Json(cell.text); }

std::string inputs_of(const Lecture& lecture) {
  std::string out;
  for (const LectureInput& input : lecture.inputs)
    out += fmt::format("{}{}={:g}", out.empty() ? "" : " ", input.name, fmt::join(input.usual, ","));
  return out;
}

}  // namespace

std::string lecture_report(const Lecture& lecture, std::span<const LectureTable> tables, const std::string& format,
                           std::span<const std::string> inputs) {
  if (format == "json") {
    Json out = result_head(ResultKind::kLecture);
    out["lecture"] = lecture.name, out["tables"] = Json::array(), out["sources"] = lecture.sources;
    for (const LectureTable& table : tables) {
      Json rows = Json::array();
      for (const auto& row : table.rows) {
        Json cells = Json::array();
        for (const Cell& cell : row) cells.push_back(json_of(cell));
        rows.push_back(cells);
      }
      out["tables"].push_back({{"title", table.title}, {"columns", table.columns}, {"rows", rows}});
    }
    return result_text(out);
  }
  if (format == "csv") {
    Table cells({"table", "row", "column", "value"});
    for (const LectureTable& table : tables) {
      for (std::size_t r = 0; r < table.rows.size(); ++r) {
        for (std::size_t c = 0; c < table.rows[r].size(); ++c) {
          const Cell& cell = table.rows[r][c];
          cells.row(
              {table.title, std::to_string(r), table.columns[c], cell.is_number ? json_of(cell).dump() : cell.text});
        }
      }
    }
    return cells.csv();
  }
  std::string out;
  for (const LectureTable& table : tables) {
    Table text(table.columns);
    for (const auto& row : table.rows) {
      std::vector<std::string> cells;
      for (const Cell& cell : row) cells.push_back(text_of(cell));
      text.row(cells);
    }
    out += table.title + "\n\n" + text.text() + "\n";
  }
  for (const LectureInput& input : lecture.inputs) {
    std::string value = fmt::format("{}={:g}", input.name, fmt::join(input.usual, ","));
    for (const std::string& given : inputs) {
      if (given.starts_with(std::string(input.name) + "=")) value = given;  // the last one counts
    }
    out += fmt::format("--set {}   {}\n", value, input.help);
  }
  for (const std::string& source : lecture.sources) out += "source: " + source + "\n";
  return out;
}

std::string lectures_report(const std::string& format) {
  if (format == "json") {
    Json out = Json::array();
    for (const Lecture& lecture : lectures())
      out.push_back({{"name", lecture.name}, {"help", lecture.help}, {"inputs", inputs_of(lecture)}});
    return catalog_text("lectures", out);
  }
  Table table({"lecture", "shows", "inputs"});
  table.words(2);
  for (const Lecture& lecture : lectures())
    table.row({std::string(lecture.name), std::string(lecture.help), inputs_of(lecture)});
  return format == "csv" ? table.csv() : table.text();
}

}  // namespace roofcast::reports
