#include "calibrate/kernel_rows.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace roofcast::calibrate {
namespace {

Timing parse_timing(std::string_view word, const Mark& mark) {
  if (word.empty() || word == "benchmark") return Timing::kBenchmark;
  if (word == "served") return Timing::kServed;
  if (word == "cool") return Timing::kCool;
  throw ConfigError(mark, fmt::format("'timing' must be benchmark, served or cool, got '{}'", word));
}

/// Columns of a measured time, all of them or none.
struct TimeColumns {
  std::vector<std::string_view> names;
  double microseconds;
};
std::span<const TimeColumns> time_columns() {
  static const std::array<TimeColumns, 4> kinds{{
      {{"latency_us"}, 1.0},
      {{"latency"}, 1e3},
      {{"dispatch_avg_t_us", "combine_avg_t_us"}, 1.0},
      {{"dispatch_transmit_us", "dispatch_notify_us", "combine_transmit_us", "combine_notify_us"}, 1.0},
  }};
  return kinds;
}

constexpr double kMostCount = 1e13;  ///< of elements, tokens or bytes: beyond the memory of any GPU

}  // namespace

Maker maker_of(std::string_view engine, const Mark& mark) {
  static constexpr std::array<std::pair<std::string_view, Maker>, 6> kMakers{{{"trtllm", Maker::kTrtllm},
                                                                              {"vllm", Maker::kVllm},
                                                                              {"sglang", Maker::kSglang},
                                                                              {"nccl", Maker::kNccl},
                                                                              {"cublaslt", Maker::kCublasLt},
                                                                              {"roofcast", Maker::kRoofcast}}};
  std::string valid;
  for (const auto& [word, maker] : kMakers) {
    if (engine.substr(0, engine.find('-')) == word) return maker;
    valid += fmt::format("{}{}-...", valid.empty() ? "" : ", ", word);
  }
  throw ConfigError(mark, fmt::format("unknown engine '{}' (valid: {})", engine, valid));
}

std::string kernels_of(Maker maker) {
  switch (maker) {
    case Maker::kTrtllm:
      return "trtllm";
    case Maker::kVllm:
      return "vllm";
    case Maker::kSglang:
      return "sglang";
    case Maker::kNccl:
    case Maker::kCublasLt:
    case Maker::kRoofcast:
      return "";
  }
  return "";
}

Maker collector_of(const KernelRules& rules) {
  for (const Maker maker : {Maker::kTrtllm, Maker::kSglang}) {
    if (kernels_of(maker) == rules.name()) return maker;
  }
  return Maker::kVllm;
}

bool RowHeader::library_of(const KernelRules& rules) const {
  if (belongs_to(rules)) return true;
  const std::string kernels = kernels_of(maker);
  const KernelRules* base = kernels.empty() ? nullptr : kernel_rules(kernels)->base();
  return base != nullptr && base->name() == rules.name();
}

KernelTable::KernelTable(const CsvTable& table, std::span<const std::string_view> columns)
    : table_(&table), engine_(table.column("engine")), kernel_(table.find("kernel")), timing_(table.find("timing")) {
  for (const std::string_view column : columns) table.column(column);
  for (const TimeColumns& kind : time_columns()) {
    for (const std::string_view name : kind.names) {
      if (const std::optional<std::size_t> found = table.find(name)) times_.push_back(*found);
    }
    microseconds_ = kind.microseconds;
    if (times_.size() == kind.names.size()) break;
    times_.clear();
  }
}

std::size_t KernelTable::index(std::string_view column) const { return table_->column(column); }

void KernelTable::fail(std::size_t row, std::string_view column, const std::string& message) const {
  throw ConfigError(table_->mark(row, index(column)), message);
}

double KernelTable::number(std::size_t row, std::string_view column, double low) const {
  const double value = table_->number(row, index(column));
  if (value < low) fail(row, column, fmt::format("'{}' must be at least {}, got {}", column, low, value));
  if (value > kMostCount) fail(row, column, fmt::format("'{}' must be at most {}, got {}", column, kMostCount, value));
  return value;
}

double KernelTable::number(std::size_t row, std::string_view column, double low, double blank) const {
  return text_if_any(row, column).empty() ? blank : number(row, column, low);
}

std::string_view KernelTable::text(std::size_t row, std::string_view column) const {
  return table_->at(row, index(column));
}

std::string_view KernelTable::text_if_any(std::size_t row, std::string_view column) const {
  const std::optional<std::size_t> found = table_->find(column);
  return found ? std::string_view(table_->at(row, *found)) : std::string_view();
}

Dtype KernelTable::dtype(std::size_t row, std::string_view column) const {
  return parse_dtype(text(row, column), table_->mark(row, index(column)));
}

RowHeader KernelTable::header(std::size_t row) const {
  RowHeader out;
  out.row = row;
  out.engine = std::string(table_->at(row, engine_));
  out.maker = maker_of(out.engine, table_->mark(row, engine_));
  if (timing_) out.timing = parse_timing(table_->at(row, *timing_), table_->mark(row, *timing_));
  if (kernel_) out.kernel = std::string(table_->at(row, *kernel_));
  if (!times_.empty() && !table_->at(row, times_.front()).empty()) {
    double sum = 0.0;
    for (const std::size_t column : times_) sum += table_->number(row, column);
    const std::string& name = table_->columns()[times_.front()];
    if (!(sum > 0.0)) {
      fail(row, name,
           fmt::format("'{}' must be a positive number of {}seconds, got {}", name,
                       microseconds_ > 1.0 ? "milli" : "micro", sum));
    }
    out.latency = sum * microseconds_ * kMicrosecond;
  }
  return out;
}

}  // namespace roofcast::calibrate
