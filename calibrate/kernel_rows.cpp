#include "calibrate/kernel_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

namespace roofcast::calibrate {
namespace {

Timing parse_timing(std::string_view word, const SourceLocation& location) {
  if (word.empty() || word == "benchmark") return Timing::kBenchmark;
  if (word == "served") return Timing::kServed;
  if (word == "cool") return Timing::kCool;
  throw ConfigError(location, fmt::format("'timing' must be benchmark, served or cool, got '{}'", word));
}

/// Columns that together are the measured time; a table has all of them or none.
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

constexpr std::array<std::pair<std::string_view, Maker>, 6> kMakers{{{"trtllm", Maker::kTrtllm},
                                                                     {"vllm", Maker::kVllm},
                                                                     {"sglang", Maker::kSglang},
                                                                     {"nccl", Maker::kNccl},
                                                                     {"cublaslt", Maker::kCublasLt},
                                                                     {"roofcast", Maker::kRoofcast}}};
std::string_view first_word(std::string_view engine) { return engine.substr(0, engine.find('-')); }

constexpr double kMostCount = 1e13;  ///< of elements, tokens or bytes: more than the memory of any GPU

}  // namespace

Maker maker_of(std::string_view engine, const SourceLocation& location) {
  const std::string_view word = first_word(engine);
  for (const auto& [known, maker] : kMakers) {
    if (word == known) return maker;
  }
  std::vector<std::string> valid = kernel_sets();
  if (std::find(valid.begin(), valid.end(), word) != valid.end()) return Maker::kOther;
  for (const auto& [known, maker] : kMakers) {
    if (kernels_of(maker).empty()) valid.emplace_back(known);
  }
  for (std::string& each : valid) each += "-...";
  throw ConfigError(location, fmt::format("unknown engine '{}' (valid: {})", engine, fmt::join(valid, ", ")));
}

std::string kernels_of(Maker maker) {
  if (maker == Maker::kNccl || maker == Maker::kCublasLt || maker == Maker::kRoofcast) return "";
  for (const auto& [word, known] : kMakers) {
    if (known == maker) return std::string(word);
  }
  return "";
}

std::string kernels_of(std::string_view engine, const SourceLocation& location) {
  const Maker maker = maker_of(engine, location);
  return maker == Maker::kOther ? std::string(first_word(engine)) : kernels_of(maker);
}

Maker collector_of(const KernelRules& rules) {
  for (const auto& [word, maker] : kMakers) {
    if (word == rules.name()) return maker;
  }
  return Maker::kVllm;
}

std::string RowHeader::kernels() const {
  return maker == Maker::kOther ? std::string(first_word(engine)) : kernels_of(maker);
}

bool RowHeader::library_of(const KernelRules& rules) const {
  if (belongs_to(rules)) return true;
  const std::string own = kernels();
  const KernelRules* base = own.empty() ? nullptr : kernel_rules(own)->base();
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
  throw ConfigError(table_->location(row, index(column)), message);
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
  return parse_dtype(text(row, column), table_->location(row, index(column)));
}

RowHeader KernelTable::header(std::size_t row) const {
  RowHeader out;
  out.row = row;
  out.engine = std::string(table_->at(row, engine_));
  out.maker = maker_of(out.engine, table_->location(row, engine_));
  if (timing_) out.timing = parse_timing(table_->at(row, *timing_), table_->location(row, *timing_));
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
