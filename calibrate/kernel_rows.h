#pragma once
// Tables of measured kernel times: a header line, one measurement per row. A table is recognised by its columns.
//   engine      trtllm-1.3.0rc20, vllm-0.24.0: the engine whose kernel it is, by its set in configs/kernels, which
//               selects the constants; nccl-2.29.2, cublaslt-13.1.0: a library's, which sets the constants of the
//               engines that call it; roofcast-0.1.0: a kernel of our own, which no engine runs
//   kernel      which variant of it, where an operator has several; any text else
//   timing      benchmark (default), served, cool: see Timing
//   latency_us  the time in microseconds; may be absent or blank if only predictions are wanted. NVIDIA's tables of
//               wide expert parallelism have `latency` in milliseconds, or the two directions of an exchange separately

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

/// Whose kernel was timed. A kernel's rows are never fitted as another's.
enum class Maker {
  kTrtllm,
  kVllm,
  kSglang,
  kOther,     ///< another engine, whose collector is not known
  kNccl,      ///< for all engines
  kCublasLt,  ///< for the engines and formats whose products it runs
  kRoofcast,  ///< no engine runs it; it measures the machine
};
/// From the first word of `engine`. Throws ConfigError at `mark` for an unknown one.
Maker maker_of(std::string_view engine, const Mark& mark);
/// The set of kernels (configs/kernels) of an engine whose collector is known; else empty.
std::string kernels_of(Maker maker);
/// The set that the `engine` of a row names; empty for libraries and for kernels of our own. Throws as maker_of().
std::string kernels_of(std::string_view engine, const Mark& mark);
/// The engine whose collector times a set's kernels: the set's own, else vLLM.
Maker collector_of(const KernelRules& rules);

/// How a kernel was timed. kBenchmark: in a collector's loop, with everything that the loop adds
/// (calibrate/rows/*_loop.h). kServed: as inside an engine. kCool: like kServed, but before the power limit lowers the
/// clock, which affects only products; `calibrate measure` times this way, except for its points under load.
enum class Timing { kServed, kBenchmark, kCool };

/// The columns of every row beside its shape.
struct RowHeader {
  std::size_t row = 0;  ///< index in its table
  std::string engine, kernel;
  Maker maker = Maker::kRoofcast;
  Timing timing = Timing::kBenchmark;
  Seconds latency{};  ///< 0 when the row has no time

  /// The set whose constants price it; empty for libraries and for kernels of our own.
  std::string kernels() const;
  /// Whether it is the set's own kernel.
  bool belongs_to(const KernelRules& rules) const { return kernels() == rules.name(); }
  /// ... or that of a set which extends it and calls the same libraries (DeepEP, DeepGEMM behind it).
  bool library_of(const KernelRules& rules) const;
};

/// Checked access to one table. Every error is a ConfigError with line and field.
class KernelTable {
 public:
  /// Refuses a table that lacks one of `columns`, or `engine`.
  KernelTable(const CsvTable& table, std::span<const std::string_view> columns);

  std::size_t rows() const { return table_->rows(); }
  /// The first of the columns that holds times; null: none does.
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
  std::vector<std::size_t> times_;  ///< columns whose sum is the time of a row; empty: no times
  double microseconds_ = 1.0;       ///< per unit of these columns
};

}  // namespace roofcast::calibrate
