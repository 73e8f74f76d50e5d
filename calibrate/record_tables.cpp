#include "calibrate/record_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/config_library.h"
#include "base/error.h"
#include "base/text.h"

namespace roofcast::calibrate {
namespace {

/// The source of a table's column: a key of the shape, or a constant word.
struct Column {
  std::string_view name, key, word;
};

struct Conversion {
  std::string_view record_op, table_op;
  std::span<const Column> columns;
};

constexpr Column kDtype{"dtype", "dtype", ""};
constexpr std::array kGemm{kDtype, Column{"m", "m", ""}, Column{"n", "n", ""}, Column{"k", "k", ""}};
constexpr std::array kDecode{Column{"attn_dtype", "dtype", ""},  Column{"kv_dtype", "dtype", ""},
                             Column{"batch", "batch", ""},       Column{"context_len", "context_len", ""},
                             Column{"heads", "heads", ""},       Column{"kv_heads", "kv_heads", ""},
                             Column{"head_dim", "head_dim", ""}, Column{"sliding_window", "", "0"}};
constexpr std::array kPrefill{Column{"attn_dtype", "dtype", ""},  Column{"kv_dtype", "dtype", ""},
                              Column{"batch", "batch", ""},       Column{"seq_len", "seq_len", ""},
                              Column{"heads", "heads", ""},       Column{"kv_heads", "kv_heads", ""},
                              Column{"head_dim", "head_dim", ""}, Column{"sliding_window", "", "0"}};
constexpr std::array kMoe{kDtype,
                          Column{"tokens", "tokens", ""},
                          Column{"hidden_size", "hidden_size", ""},
                          Column{"inter_size", "inter_size", ""},
                          Column{"top_k", "top_k", ""},
                          Column{"experts", "experts", ""},
                          Column{"tp", "", "1"},
                          Column{"ep", "", "1"},
                          Column{"distribution", "", "balanced"}};
constexpr std::array kNccl{Column{"op", "", "all_reduce"}, kDtype, Column{"gpus", "gpus", ""},
                           Column{"elements", "elements", ""}};
constexpr std::array kElementwise{Column{"operation", "operation", ""}, Column{"bytes", "bytes moved", ""}};
constexpr std::array kCopy{Column{"operation", "direction", ""}, Column{"bytes", "bytes moved", ""}};

constexpr std::array kConversions{
    Conversion{"gemm", "gemm", kGemm},
    Conversion{"attention_prefill", "attention_prefill", kPrefill},
    Conversion{"attention_decode", "attention_decode", kDecode},
    Conversion{"moe", "moe", kMoe},
    Conversion{"all_reduce", "nccl", kNccl},
    Conversion{"elementwise", "elementwise", kElementwise},
    Conversion{"copy", "elementwise", kCopy},
};

std::string field_of(const Record& record, const Column& column, const SourceLocation& location) {
  if (!column.word.empty()) return std::string(column.word);
  if (column.key == "dtype") return record.point.dtype;
  if (column.key == "bytes moved") return fmt::format("{:.0f}", record.bytes);
  const Point::Value* value = record.point.find(column.key);
  if (!value) throw ConfigError(location, fmt::format("a measured {} has 'shape.{}'", record.point.op, column.key));
  if (std::holds_alternative<std::string>(*value)) return std::get<std::string>(*value);
  return std::to_string(std::get<std::int64_t>(*value));
}

/// The driver stages copies from pageable memory; no engine copies that way.
bool is_row(const Record& record, const Conversion& conversion, bool with_held_down) {
  if (record.point.op != conversion.record_op || !record.has_time()) return false;
  if (!with_held_down && is_held_down(record)) return false;
  const Point::Value* memory = record.point.find("memory");
  return !memory || *memory != Point::Value{std::string("pageable")};
}

}  // namespace

bool is_always_held_down(const RecordFile& file) {
  const auto count = [&](bool down) {
    return std::count_if(file.records.begin(), file.records.end(), [&](const Record& r) {
      return r.has_time() && !r.point.find("load_ms") && is_held_down(r) == down;
    });
  };
  return count(true) > count(false);
}

std::vector<MeasuredTable> tables_of(const RecordFile& file) {
  struct Rows {
    std::string_view op;
    std::vector<std::string> columns;
    std::vector<std::vector<std::string>> rows;
    std::vector<int> lines;
  };
  const bool always_down = is_always_held_down(file);
  std::vector<Rows> found;
  for (const Conversion& conversion : kConversions) {
    for (std::size_t i = 0; i < file.records.size(); ++i) {
      const Record& record = file.records[i];
      if (!is_row(record, conversion, always_down)) continue;
      if (found.empty() || found.back().op != conversion.table_op) {
        found.push_back({conversion.table_op, {"engine", "kernel", "latency_us", "timing"}, {}, {}});
        for (const Column& column : conversion.columns) found.back().columns.emplace_back(column.name);
      }
      const double median = statistics_of(record.samples_us).median_us;
      std::vector<std::string> row{record.engine, record.kernel, fmt::format("{:.7g}", median),
                                   is_hot(record) ? "served" : "cool"};
      const SourceLocation location{file.path, file.lines[i], 0};
      for (const Column& column : conversion.columns) row.push_back(field_of(record, column, location));
      found.back().rows.push_back(std::move(row));
      found.back().lines.push_back(file.lines[i]);
    }
  }
  std::vector<MeasuredTable> tables;
  for (Rows& rows : found) {
    tables.push_back(
        {rows.op, CsvTable::of_rows(file.path, std::move(rows.columns), rows.rows, std::move(rows.lines))});
  }
  return tables;
}

const Device& device_of(const RecordFile& file) {
  if (file.records.empty()) throw ConfigError(SourceLocation{file.path, 0, 0}, "contains no complete measurement");
  const Device& first = file.records.front().device;
  for (std::size_t i = 1; i < file.records.size(); ++i) {
    const Device& device = file.records[i].device;
    if (device.name == first.name && device.sm_count == first.sm_count) continue;
    throw ConfigError(SourceLocation{file.path, file.lines[i], 0},
                      fmt::format("measured on '{}', but the lines before on '{}'", device.name, first.name));
  }
  return first;
}

bool is_device(const Device& device, const GpuSpec& gpu) {
  const double memory = gpu.memory_capacity.base();
  return device.sm_count == gpu.sm_count && std::abs(device.memory_bytes - memory) <= 0.03 * memory;
}

ConfigTree gpu_of_device(const Device& device) {
  const std::string called = lower(device.name);
  ConfigTree best;
  int most = -1;
  for (const std::string& name : names_of("hardware")) {
    const ConfigTree tree = load_named("hardware", name, SourceLocation{"hardware", 0, 0});
    if (!is_device(device, parse_gpu_spec(ConfigReader(tree, "a GPU")))) continue;
    int likeness = tree->find("like") == nullptr ? 1 : 0;  // among equal siblings, prefer the one that others name
    for (const std::string& word : split(name, '-')) likeness += called.find(word) != std::string::npos ? 2 : 0;
    if (likeness > most) best = tree, most = likeness;
  }
  return best;
}

void require_device(const RecordFile& file, const GpuSpec& gpu) {
  const Device& device = device_of(file);
  if (is_device(device, gpu)) return;
  throw ConfigError(
      SourceLocation{file.path, file.lines.front(), 0},
      fmt::format("measured on '{}' with {} SMs and {:.1f} GB; {} has {} and {:.1f} GB", device.name, device.sm_count,
                  device.memory_bytes / 1e9, gpu.name, gpu.sm_count, gpu.memory_capacity.base() / 1e9));
}

}  // namespace roofcast::calibrate
