#include "reports/summary.h"

#include <algorithm>

#include <fmt/format.h>

#include "reports/html_text.h"
#include "reports/sweep_verdict.h"
#include "reports/table.h"
#include "reports/validation_pairs.h"

namespace roofcast::reports {
namespace {

std::string cell_of(const Json& value) {
  if (value.is_number_float()) return significant(value.get<double>(), 4);
  if (value.is_string()) return clean_utf8(value.get<std::string>());
  return value.is_primitive() && !value.is_null() ? value.dump() : "";
}

/// A list of records as a table: the keys of the first are the columns, one level deep.
VerdictTable table_of_records(const Json& records) {
  constexpr std::size_t kShown = 40;
  VerdictTable table{.columns = {}, .rows = {}, .in_all = records.size()};
  for (const auto& [key, value] : records.front().items()) {
    if (value.is_primitive()) table.columns.push_back(clean_utf8(key));
  }
  for (std::size_t r = 0; r < std::min(kShown, records.size()); ++r) {
    std::vector<std::string>& row = table.rows.emplace_back();
    for (const std::string& column : table.columns)
      row.push_back(records[r].is_object() ? cell_of(records[r].value(column, Json())) : "");
  }
  return table;
}

/// Every list of records in a validation or a calibration.
ResultVerdict verdict_of_lists(const Json& json) {
  ResultVerdict out;
  for (const auto& [name, list] : json.items()) {
    if (list.is_array() && !list.empty() && list.front().is_object() && name != "verdict")
      out.add(clean_utf8(name), table_of_records(list));
  }
  return out;
}

ResultVerdict verdict_of_pairs(const Result& r) {
  std::string text;
  for (const ValidationPairs& v : validation_pairs(r)) {
    text +=
        fmt::format("{}: {} rows, mean absolute error {:.1f} %, median {:.1f} %, {:.0f} % of the rows within 10 %.\n",
                    v.name, v.rows, v.mape, v.median, v.within_ten);
  }
  ResultVerdict out;
  out.add("", text);
  return out;
}

ResultVerdict verdict_of_points(const Result& r) {
  SweepVerdict verdict(r.json.is_object() ? text_at(r.json, "model") : "",
                       r.json.is_object() ? text_at(r.json, "gpu") : "");
  for (const ResultPoint& p : r.points) verdict.add(p.keys, p.result);
  return verdict.verdict();
}

}  // namespace

ResultVerdict verdict_of(const Result& r) {
  ResultVerdict out;
  if (r.json.is_object()) out = read_verdict(r.json);
  if (!out.parts.empty()) return out;
  switch (r.kind) {
    case ResultKind::kSweep:
      return verdict_of_points(r);
    case ResultKind::kKernelRows:
    case ResultKind::kServingRows:
      return verdict_of_pairs(r);
    case ResultKind::kRequestRows:
      out.add("", fmt::format("{} requests of one simulation.", r.table->rows()));
      return out;
    case ResultKind::kValidation:
    case ResultKind::kCalibration:
      return verdict_of_lists(r.json);
    case ResultKind::kEstimate:
    case ResultKind::kSimulation:
    case ResultKind::kPlan:
    case ResultKind::kLadder:
    case ResultKind::kComparison:
    case ResultKind::kServicesPlan:
    case ResultKind::kLecture:
    case ResultKind::kImport:
    case ResultKind::kCatalog:
    case ResultKind::kCatalogEntry:
      break;
  }
  out.add("", "This file has no verdict, only numbers: a table, or the JSON of an older roofcast.");
  return out;
}

}  // namespace roofcast::reports
