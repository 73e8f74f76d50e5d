#pragma once
// Tables of measured kernel times: a header line, one measurement a row. A table is known by its columns.
//   engine      trtllm-1.3.0rc20, vllm-0.24.0, nccl-2.29.2: whose kernel, for its family of constants;
//               roofcast-0.1.0: a microkernel of `calibrate measure`, which times as served
//   kernel      which variant of it, where an operator has several; any text else
//   latency_us  the time in microseconds; may be absent or blank where only predictions are wanted

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "base/units.h"
#include "hw/cost.h"
#include "hw/dtype.h"
#include "hw/efficiency.h"

namespace roofcast {

/// What every row says beside its shape.
struct RowHeader {
  std::size_t row = 0;  ///< in its table
  std::string engine, kernel;
  std::optional<KernelFamily> family;  ///< null: belongs to every family (NCCL, ours)
  Timing timing = Timing::kBenchmark;  ///< our own loop finds no weights in L2 and no host floor: kServed
  Seconds latency{};                   ///< 0 when the row has no time

  bool belongs_to(KernelFamily which) const { return !family || *family == which; }
};

/// trtllm-* -> kTrtllm; vllm-*, sglang-* -> kVllm; nccl-*, roofcast-* -> null. Others throw ConfigError at `mark`.
std::optional<KernelFamily> family_of_engine(std::string_view engine, const Mark& mark);

/// Checked access to one table. Every fault is a ConfigError with its line and field.
class KernelTable {
 public:
  /// Refuses a table that lacks one of `columns`, or `engine`.
  KernelTable(const CsvTable& table, std::span<const std::string_view> columns);

  std::size_t rows() const { return table_->rows(); }
  RowHeader header(std::size_t row) const;
  /// A finite number of at least `low`.
  double number(std::size_t row, std::string_view column, double low) const;
  /// The same, of a column that may be blank or absent.
  double number(std::size_t row, std::string_view column, double low, double blank) const;
  std::string_view text(std::size_t row, std::string_view column) const;
  /// The same, empty where the table lacks the column.
  std::string_view text_if_any(std::size_t row, std::string_view column) const;
  Dtype dtype(std::size_t row, std::string_view column) const;
  [[noreturn]] void fail(std::size_t row, std::string_view column, const std::string& message) const;

 private:
  std::size_t index(std::string_view column) const;

  const CsvTable* table_;
  std::size_t engine_;
  std::optional<std::size_t> kernel_, latency_;
};

}  // namespace roofcast
