#pragma once
// Recorded requests: readers of the formats that traces come in.

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
    std::uint32_t blocks = 0;       ///< hashes of this request,
    std::uint64_t first_block = 0;  ///< from here on in block_hashes
  };
  std::vector<Row> rows;
  std::vector<std::uint64_t> block_hashes;
  int block_tokens = 0;  ///< tokens of one hash; 0: the format has none
  int sessions = 0;
  bool was_sorted = true;

  /// The duration of one pass: the last arrival plus one mean gap, so that a loop keeps the rate.
  Seconds period() const;
};

/// Throws ConfigError `path:line: message` for an invalid row. An empty format is recognised by its first
/// line. Rows out of order are sorted, equal times keep theirs.
Trace read_trace(const std::string& path, std::string_view format);

/// The same, read once while somebody holds it: a search plays a trace many times. Safe from several threads.
std::shared_ptr<const Trace> shared_trace(const std::string& path, std::string_view format);

/// The same from memory. `path` names it in errors.
Trace parse_trace_text(std::string_view text, const std::string& path, std::string_view format);

/// The readers behind it, by the form of their lines.
enum class CsvTrace { kAzure, kBurstGpt, kVidur, kPlain };
enum class JsonTrace { kMooncake, kBailian, kAgentic };
void read_csv_rows(std::string_view text, const std::string& path, CsvTrace kind, Trace& trace);
void read_json_rows(std::string_view text, const std::string& path, JsonTrace kind, Trace& trace);

/// Spreads a small number over 64 bits, one to one (the finalizer of splitmix64).
constexpr std::uint64_t mix_bits(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace roofcast
