#pragma once
// Tables of measured kernel times: a header line, then one measurement per row. A table is recognised by its columns.
//   engine      trtllm-1.3.0rc20, vllm-0.24.0: the engine of the kernel, named by its set in configs/kernels; selects
//               the constants. nccl-2.29.2, cublaslt-13.1.0: a library, whose rows set the constants of the engines
//               that call it. roofcast-0.1.0: our own kernel, which no engine runs
//   kernel      the variant, if an operator has several; otherwise any text
//   timing      benchmark (default), served, cool: see Timing
//   latency_us  the time in microseconds; may be absent or blank if only predictions are wanted. NVIDIA's tables of
//               wide expert parallelism have `latency` in milliseconds, or separate times of dispatch and combine

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "base/units.h"
#include "hw/dtype.h"
#include "hw/kernel_rules.h"

namespace roofcast::calibrate {

/// The software whose kernel was timed. Rows of one are never fitted as rows of another.
enum class Maker {
  kTrtllm,
  kVllm,
  kSglang,
  kOther,     ///< another engine, without a collector of its own
  kNccl,      ///< for all engines
  kCublasLt,  ///< for the engines and formats whose GEMMs it runs
  kRoofcast,  ///< no engine runs it; it measures the machine
};
/// From the first word of `engine`. Throws ConfigError at `location` if unknown.
Maker maker_of(std::string_view engine, const SourceLocation& location);
/// The kernel set (configs/kernels) of an engine with a collector, else empty.
std::string kernels_of(Maker maker);
/// The kernel set named by the `engine` of a row; empty for libraries and our own kernels. Throws as maker_of().
std::string kernels_of(std::string_view engine, const SourceLocation& location);
/// The engine whose collector times the kernels of a set: the set's own, else vLLM.
Maker collector_of(const KernelRules& rules);

/// How a kernel was timed.
///   kBenchmark  in a collector's loop, with everything that the loop adds (calibrate/rows/*_loop.h)
///   kServed     as inside an engine
///   kCool       as kServed, but before the power limit lowers the clock, which only affects GEMMs. `calibrate measure`
///               times this way, except for points under load
enum class Timing { kServed, kBenchmark, kCool };

/// The columns of every row besides its shape.
struct RowHeader {
  std::size_t row = 0;  ///< index in its table
  std::string engine, kernel;
  Maker maker = Maker::kRoofcast;
  Timing timing = Timing::kBenchmark;
  Seconds latency{};  ///< 0 if the row has no time

  /// The kernel set whose constants price it; empty for libraries and our own kernels.
  std::string kernels() const;
  /// Whether it is the set's own kernel.
  bool belongs_to(const KernelRules& rules) const { return kernels() == rules.name(); }
  /// Whether it is that of a set which extends `rules` and calls the same libraries (DeepEP, DeepGEMM after it).
  bool library_of(const KernelRules& rules) const;
};

/// Checked access to one table. Every error is a ConfigError with line and field.
class KernelTable {
 public:
  /// Throws if the table lacks one of `columns`, or `engine`.
  KernelTable(const CsvTable& table, std::span<const std::string_view> columns);

  std::size_t rows() const { return table_->rows(); }
  /// The first column with times; null if there is none.
  std::optional<std::size_t> time_column() const {
    return times_.empty() ? std::nullopt : std::optional(times_.front());
  }
  RowHeader header(std::size_t row) const;
  /// A finite number, at least `low`.
  double number(std::size_t row, std::string_view column, double low) const;
  /// The same for a column that may be blank or absent.
  double number(std::size_t row, std::string_view column, double low, double blank) const;
  std::string_view text(std::size_t row, std::string_view column) const;
  /// The same; empty if the table lacks the column.
  std::string_view text_if_any(std::size_t row, std::string_view column) const;
  Dtype dtype(std::size_t row, std::string_view column) const;
  [[noreturn]] void fail(std::size_t row, std::string_view column, const std::string& message) const;

 private:
  std::size_t index(std::string_view column) const;

  const CsvTable* table_;
  std::size_t engine_;
  std::optional<std::size_t> kernel_, timing_;
  std::vector<std::size_t> times_;  ///< columns that add up to the time of a row; empty: no times
  double microseconds_ = 1.0;       ///< per unit of these columns
};

/// What `read` makes of each row of a table.
template <class Read>
auto read_rows(const CsvTable& table, std::span<const std::string_view> columns, Read read) {
  const KernelTable checked(table, columns);
  std::vector<decltype(read(checked, std::size_t{0}))> rows;
  rows.reserve(checked.rows());
  for (std::size_t i = 0; i < checked.rows(); ++i) rows.push_back(read(checked, i));
  return rows;
}

}  // namespace roofcast::calibrate
