#pragma once
// One measurement as one line of JSON: what ran, on which device, every sample, and why it stopped. Lines are appended,
// never edited.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/units.h"

namespace roofcast::calibrate {

/// An operator at one shape in one format.
struct Point {
  using Value = std::variant<std::int64_t, std::string>;

  std::string op;     ///< gemm, attention_decode, stream, ...: listed in grid.h
  std::string dtype;  ///< empty if the operator has no formats
  std::vector<std::pair<std::string, Value>> shape;
  int level = 0;  ///< 0 is measured first

  /// SIM_CHECK failure unless the shape has this key as a number or a word.
  std::int64_t number(std::string_view name) const;
  const std::string& word(std::string_view name) const;
  const Value* find(std::string_view name) const;
  std::string key() const;  ///< "gemm bf16 m=1 n=4096 k=4096": equal points have equal keys
};

/// The machine as reported by its driver.
struct Device {
  std::string name;                ///< "NVIDIA H200"
  std::string driver, cuda;        ///< versions; empty if unknown
  std::string compute_capability;  ///< "9.0"
  int sm_count = 0;                ///< or cores
  int devices = 1;                 ///< number of such devices that collectives may use
  double memory_bytes = 0, l2_bytes = 0;
};

/// Clocks and temperature at one moment; 0 = unknown.
struct DeviceState {
  double sm_clock_mhz = 0, memory_clock_mhz = 0, temperature_c = 0, power_w = 0;
  bool throttled = false;  ///< clocks lowered by power or heat
};

/// Why a measurement ended.
enum class Stop {
  kConverged,    ///< the standard error of the median fell below the limit
  kTime,         ///< the point's share of the budget was spent
  kSamples,      ///< the maximum number of samples per point
  kOutOfMemory,  ///< no samples
  kUnsupported,  ///< the device does not support this format or instruction; no samples
  kWrongResult,  ///< the result differs from the reference: not timed
  kFailed,       ///< the device or a library reported an error, or the device was lost; no samples
};
std::string_view name_of(Stop stop);

struct Record {
  Point point;
  Device device;
  std::string engine;  ///< the kernel's library: "roofcast-0.1.0", "nccl-2.28.3"
  std::string kernel;  ///< the kernel: "cublasLt 130100 algorithm 66 tile 20"
  std::string commit, time;
  DeviceState before, during, after;  ///< `during`: while the last samples ran
  double flops = 0, bytes = 0;        ///< per call
  int repeats = 1;                    ///< calls per sample
  std::vector<double> samples_us;
  std::vector<int> throttled;  ///< samples taken while power or heat lowered the clocks; kept, but marked
  Stop stop = Stop::kConverged;
  std::string note;  ///< the error, if there was one

  bool has_time() const { return !samples_us.empty(); }
};

/// Statistics of the samples, in the order in which they were taken.
struct Statistics {
  double median_us = 0;
  double noise = 0;           ///< robust relative standard deviation of one sample: interquartile range / 1.349
  double standard_error = 0;  ///< of the median, relative: the larger of those for independent samples and for batches
  double drift = 0;           ///< median of the last third over that of the first, minus 1
  bool drifts = false;        ///< by more than 1 %, and more than chance explains
};
Statistics statistics_of(const std::vector<double>& samples_us);
/// Whether the clock was that of a GPU under load: measured with load, or throttled for most of the samples.
bool is_hot(const Record& record);
/// Whether it is hot without `load_ms`: its clock is anywhere between the cool one and the one under load.
bool is_held_down(const Record& record);

/// One line, without its line end.
std::string to_json_line(const Record& record);

struct RecordFile {
  std::string path;
  std::vector<Record> records;
  std::vector<int> lines;       ///< the line of each record
  std::size_t whole_bytes = 0;  ///< up to the end of the last complete line
  bool torn = false;            ///< the last line is incomplete, for example after a power failure; it is left out
};
/// Throws ConfigError `path:line: message` for a line that is not a measurement: not JSON, a sample that is not a
/// positive number, an unknown dtype.
inline constexpr std::size_t kMostRecordBytes = std::size_t{1} << 28;  ///< of a file of records or its table
RecordFile parse_records(std::string_view text, const std::string& path);
RecordFile read_records(const std::string& path);
/// Whether the bytes begin like JSON Lines.
bool looks_like_records(std::string_view text);

}  // namespace roofcast::calibrate
