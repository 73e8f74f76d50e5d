#pragma once
// Tables of measured kernel times: a header line, one measurement a row. A table is known by its columns.
//   engine      trtllm-1.3.0rc20, vllm-0.24.0: whose kernel, for its family of constants; nccl-2.29.2, cublaslt-13.1.0:
//               a library's, which sets the constants of the engines that call it; roofcast-0.1.0: a kernel of our own,
//               which no engine runs
//   kernel      which variant of it, where an operator has several; any text else
//   timing      benchmark (where absent), served, cool: see Timing
//   latency_us  the time in microseconds; may be absent or blank where only predictions are wanted. NVIDIA's tables of
//               wide expert parallelism have `latency` in milliseconds, or the two directions of an exchange apart

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

namespace roofcast {

/// Whose kernel was timed. Nothing measured with one kernel is fitted as another.
enum class Maker {
  kTrtllm,
  kVllm,
  kSglang,
  kNccl,      ///< for all engines
  kCublasLt,  ///< for the engines and formats whose products it runs
  kRoofcast,  ///< no engine runs it: it tells what the machine does
};
/// By the first word of `engine`. Throws ConfigError at `mark` for one that is not known.
Maker maker_of(std::string_view engine, const Mark& mark);
/// The set of kernels (configs/kernels) whose own they are; empty for libraries and for kernels of our own.
std::string kernels_of(Maker maker);
/// Whose collector times what a set runs: that of its name, else vLLM's.
Maker collector_of(const KernelRules& rules);

/// How a kernel was timed. kBenchmark: as a collector's loop times it, with all that the loop has beside the kernel
/// (calibrate/rows/*_loop.h). kServed: as inside an engine. kCool: as kServed, before the power limit has pulled the
/// clock down, which only products feel; so `calibrate measure` times, but for its points under load.
enum class Timing { kServed, kBenchmark, kCool };

/// What every row says beside its shape.
struct RowHeader {
  std::size_t row = 0;  ///< in its table
  std::string engine, kernel;
  Maker maker = Maker::kRoofcast;
  Timing timing = Timing::kBenchmark;
  Seconds latency{};  ///< 0 when the row has no time

  /// Is it the set's own kernel?
  bool belongs_to(const KernelRules& rules) const { return kernels_of(maker) == rules.name(); }
  /// Or of a set that extends it, and calls the same libraries (DeepEP, DeepGEMM behind it)?
  bool library_of(const KernelRules& rules) const;
};

/// Checked access to one table. Every fault is a ConfigError with its line and field.
class KernelTable {
 public:
  /// Refuses a table that lacks one of `columns`, or `engine`.
  KernelTable(const CsvTable& table, std::span<const std::string_view> columns);

  std::size_t rows() const { return table_->rows(); }
  /// The first of those that hold the times; null: none does.
  std::optional<std::size_t> time_column() const {
    return times_.empty() ? std::nullopt : std::optional(times_.front());
  }
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
  std::optional<std::size_t> kernel_, timing_;
  std::vector<std::size_t> times_;  ///< columns that add up to the time of a row; empty: none is measured
  double microseconds_ = 1.0;       ///< of their unit
};

}  // namespace roofcast
