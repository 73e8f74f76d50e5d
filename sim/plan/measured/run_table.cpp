#include "sim/plan/measured/run_table.h"

#include <cmath>

#include <fmt/format.h>

#include "base/text.h"

namespace roofcast {

RunKind kind_of(const CsvTable& table) {
  const auto has = [&](std::string_view column) { return table.find(column).has_value(); };
  if (has("system") && has("scenario") && has("target_qps")) return RunKind::kSubmission;
  if (has("prefill_num_workers") && has("decode_num_workers") && has("concurrency")) return RunKind::kDisaggregated;
  if (has("concurrency") && has("tp")) return RunKind::kAggregated;
  if (has("mean_batch") && has("median_itl_ms") && has("mean_output_tokens")) return RunKind::kSteady;
  if (has("batch") && has("metric")) return RunKind::kStatic;
  if (has("request_rate") && has("metric")) return RunKind::kOnline;
  if (has("metric") && has("isl") && has("osl")) return RunKind::kOffline;
  throw ConfigError(
      SourceLocation{table.path(), 1, 1},
      "these columns are none of: closed-loop runs (concurrency, tp), disaggregated runs (prefill_num_workers, "
      "decode_num_workers, concurrency), steady batches (mean_batch, mean_output_tokens, median_itl_ms), static "
      "batches (batch, metric), offline runs (isl, osl, metric), online runs "
      "(request_rate, metric), submissions (system, scenario, target_qps)");
}

double measured_value(const CsvTable& table, std::size_t row, std::string_view column) {
  const auto at = table.find(column);
  return at ? table.number(row, *at, 0.0) : 0.0;
}

std::string RunColumns::text(std::size_t row, std::string_view name) const {
  const auto at = table_.find(name);
  return at ? std::string(trim(table_.at(row, *at))) : std::string();
}

double RunColumns::number(std::size_t row, std::string_view name, double blank) const {
  const auto at = table_.find(name);
  return at && !trim(table_.at(row, *at)).empty() ? table_.number(row, *at, blank) : blank;
}

int RunColumns::count(std::size_t row, std::string_view name, int blank) const {
  const double value = number(row, name, blank);
  if (value < 0 || value > 1e9 || value != std::floor(value)) {
    throw ConfigError(table_.location(row, table_.column(name)),
                      fmt::format("'{}' must be a whole number, got '{}'", name, text(row, name)));
  }
  return static_cast<int>(value);
}

int RunColumns::needed(std::size_t row, std::string_view name) const {
  const int value = count(row, name, 0);
  if (value < 1) throw ConfigError(location(row), fmt::format("'{}' must be a whole number, 1 or more", name));
  return value;
}

}  // namespace roofcast
