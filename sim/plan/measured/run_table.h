#pragma once
// Columns of a table of measured serving runs.

#include <array>
#include <string>
#include <string_view>

#include "base/csv.h"

namespace roofcast {

/// Kinds of tables, recognised by their columns, not by the file name.
enum class RunKind {
  kAggregated,     ///< closed loop on one deployment: ttft_ms, tpot_ms
  kDisaggregated,  ///< the same with prefill and decode on separate workers
  kStatic,         ///< one batch run to completion: metric, value
  kOffline,        ///< everything queued at once: metric, value
  kOnline,         ///< an offered rate: metric, value
  kSteady,         ///< a server at a steady batch: mean_batch; median_itl_ms, output_tokens_per_s
  kSubmission,     ///< submissions (MLPerf): system, scenario, target_qps; tokens_per_s, or limits that were met
};

/// Measures TTFT and TPOT of a closed loop.
inline bool closed_loop(RunKind kind) { return kind == RunKind::kAggregated || kind == RunKind::kDisaggregated; }

/// Metrics (and columns) of a server at a steady batch.
inline constexpr std::array<std::string_view, 4> kSteadyMetrics{"median_itl_ms", "output_tokens_per_s", "power_w",
                                                                "joules_per_output_token"};

/// Throws ConfigError for columns of an unknown kind.
RunKind kind_of(const CsvTable& table);

/// The measured value; 0 if the column is absent or the cell blank.
double measured_value(const CsvTable& table, std::size_t row, std::string_view column);

/// A table's cells by column name; absent columns read as blank.
class RunColumns {
 public:
  explicit RunColumns(const CsvTable& table) : table_(table) {}
  std::string text(std::size_t row, std::string_view name) const;
  double number(std::size_t row, std::string_view name, double blank) const;
  int count(std::size_t row, std::string_view name, int blank) const;
  int needed(std::size_t row, std::string_view name) const;  ///< 1 or more, or ConfigError
  SourceLocation location(std::size_t row) const { return table_.location(row, 0); }
  bool has(std::string_view name) const { return table_.find(name).has_value(); }

 private:
  const CsvTable& table_;
};

}  // namespace roofcast
