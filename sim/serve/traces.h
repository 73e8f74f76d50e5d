#pragma once
// Recorded requests, and readers of the trace formats.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace roofcast {

/// The requests of a trace in order of arrival; the first arrives at 0.
struct Trace {
  struct Row {
    double seconds = 0.0;
    int prompt_tokens = 0;
    int output_tokens = 0;
    int session = -1;
    std::uint32_t blocks = 0;       ///< number of hashes of this request
    std::uint64_t first_block = 0;  ///< index of its first hash in block_hashes
  };
  std::vector<Row> rows;
  std::vector<std::uint64_t> block_hashes;
  int block_tokens = 0;  ///< tokens per hash; 0: the format has no hashes
  int sessions = 0;
  bool was_sorted = true;

  /// The duration of one pass: the last arrival plus one mean gap, so that a loop keeps the rate.
  Seconds period() const;
};

/// Throws ConfigError `path:line: message` for an invalid row. If `format` is empty, the first line determines it. Rows
/// are sorted by arrival; the sort is stable.
Trace read_trace(const std::string& path, std::string_view format);

/// The same, cached while any caller holds the result: a search simulates one trace many times. Thread-safe.
std::shared_ptr<const Trace> shared_trace(const std::string& path, std::string_view format);

/// The same from memory. Errors name `path`.
Trace parse_trace_text(std::string_view text, const std::string& path, std::string_view format);

/// The readers behind it, by the form of their lines.
enum class CsvTrace { kAzure, kBurstGpt, kVidur, kPlain };
enum class JsonTrace { kMooncake, kBailian, kAgentic };
void read_csv_rows(std::string_view text, const std::string& path, CsvTrace kind, Trace& trace);
void read_json_rows(std::string_view text, const std::string& path, JsonTrace kind, Trace& trace);

/// Bijective mix of a 64-bit number (the finalizer of splitmix64).
constexpr std::uint64_t mix_bits(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace roofcast
