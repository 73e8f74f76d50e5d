#include "reports/records_csv.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/number_text.h"
#include "base/text.h"
#include "reports/table.h"

namespace roofcast::reports {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::pair<std::string, std::string>>;

std::string cell(const Json& value) {
  const bool number = value.is_number_float();
  if (value.is_null() || (number && !std::isfinite(value.get<double>()))) return "";
  if (value.is_string()) return value.get<std::string>();
  return number ? fmt::format("{}", value.get<double>()) : value.dump();
}

void flatten(const Json& record, const std::string& prefix, Row& row) {
  for (const auto& [key, value] : record.items()) {
    const bool adds_no_name = key == "parallelism" || key == "precision" || key == "cost";
    if (value.is_object()) {
      flatten(value, adds_no_name ? prefix : prefix + key + "_", row);
    } else if (!value.is_array()) {
      row.emplace_back(prefix + key, cell(value));
    }
  }
}

}  // namespace

std::string records_csv(const Json& records) {
  std::vector<Row> rows;
  std::vector<std::string> columns;
  for (const Json& record : records) {
    flatten(record, "", rows.emplace_back());
    for (const auto& [name, value] : rows.back()) {
      if (std::find(columns.begin(), columns.end(), name) == columns.end()) columns.push_back(name);
    }
  }
  Table table(columns);
  for (const Row& row : rows) {
    std::vector<std::string> cells;
    for (const std::string& column : columns) {
      const auto it = std::find_if(row.begin(), row.end(), [&](const auto& field) { return field.first == column; });
      cells.push_back(it == row.end() ? "" : it->second);
    }
    table.row(std::move(cells));
  }
  return table.csv();
}

std::string with_columns(const std::string& csv, const std::string& names, const std::string& format) {
  const CsvTable all = CsvTable::parse(csv, "csv");
  const std::vector<std::string> wanted = split(names, ',');
  std::vector<std::size_t> columns;
  for (const std::string& name : wanted) {
    const std::optional<std::size_t> column = all.find(name);
    if (!column) throw ConfigError("--columns: " + unknown_name("column", name, all.columns()));
    columns.push_back(*column);
  }
  Table table(wanted);
  for (std::size_t row = 0; row < all.rows(); ++row) {
    std::vector<std::string> cells;
    for (const std::size_t column : columns) {
      cells.emplace_back(all.at(row, column));
      double number = 0;
      if (format != "csv" && parse_number(cells.back(), number) == NumberFault::kNone)
        cells.back() = significant(number, 5);
    }
    table.row(std::move(cells));
  }
  return format == "csv" ? table.csv() : table.text();
}

void add_metrics(const MetricsList& metrics, Json& record) {
  for (const auto& [name, value] : metrics)
    std::visit([&, &key = name](const auto& plain) { record[key] = plain; }, value);
}

}  // namespace roofcast::reports
