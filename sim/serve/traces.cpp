#include "sim/serve/traces.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/read_file.h"
#include "base/text.h"
#include "sim/serve/workload.h"

namespace roofcast {
namespace {

constexpr std::array<TraceFormat, 7> kFormats = {{
    {"azure", "Azure LLM inference CSV: TIMESTAMP,ContextTokens,GeneratedTokens"},
    {"mooncake", "Mooncake JSON lines: timestamp (ms), input_length, output_length, hash_ids of 512 tokens"},
    {"bailian", "Qwen-Bailian JSON lines: chat_id, parent_chat_id, timestamp (s), lengths, hash_ids of 16 tokens"},
    {"burstgpt", "BurstGPT CSV: Timestamp (s), Request tokens, Response tokens; failed requests are left out"},
    {"vidur", "Vidur CSV: arrived_at (s), num_prefill_tokens, num_decode_tokens"},
    {"csv", "any CSV with arrival_s, prompt_tokens, output_tokens and perhaps session, as --requests-out writes"},
    {"agentic", "agent sessions as JSON lines: {block_size, requests: [{t (s), in, out, hash_ids}]}, all from t = 0"},
}};

/// Traces of millions of requests stay below this.
constexpr std::size_t kLargestTrace = std::size_t{1} << 30;

/// The format by the first line of the file, or nothing.
std::string_view format_of(std::string_view text) {
  const std::string_view line = text.substr(0, std::min(text.find('\n'), std::size_t{4096}));
  const auto holds = [line](std::string_view part) { return line.find(part) != std::string_view::npos; };
  if (holds("\"chat_id\"")) return "bailian";
  if (holds("\"requests\"") || holds("\"hash_id_scope\"")) return "agentic";
  if (holds("\"input_length\"")) return "mooncake";
  if (holds("ContextTokens")) return "azure";
  if (holds("Request tokens")) return "burstgpt";
  if (holds("num_prefill_tokens")) return "vidur";
  if (holds("prompt_tokens")) return "csv";
  return {};
}

void check_packed(const std::string& path) {
  struct Packing {
    std::string_view suffix, command;
  };
  constexpr std::array<Packing, 6> kPackings = {{{".tar.xz", "tar -xf"},
                                                 {".tar.gz", "tar -xf"},
                                                 {".xz", "xz -dk"},
                                                 {".gz", "gunzip -k"},
                                                 {".zst", "unzstd"},
                                                 {".zip", "unzip"}}};
  for (const Packing& packing : kPackings) {
    if (!path.ends_with(packing.suffix)) continue;
    throw ConfigError(SourceLocation{path},
                      fmt::format("is compressed; unpack it first: {} {}", packing.command, path));
  }
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const TraceFormat& format : kFormats) names.emplace_back(format.name);
  return names;
}

void read_rows(std::string_view text, const std::string& path, std::string_view format, Trace& trace) {
  if (format == "azure") return read_csv_rows(text, path, CsvTrace::kAzure, trace);
  if (format == "burstgpt") return read_csv_rows(text, path, CsvTrace::kBurstGpt, trace);
  if (format == "vidur") return read_csv_rows(text, path, CsvTrace::kVidur, trace);
  if (format == "csv") return read_csv_rows(text, path, CsvTrace::kPlain, trace);
  if (format == "mooncake") return read_json_rows(text, path, JsonTrace::kMooncake, trace);
  if (format == "bailian") return read_json_rows(text, path, JsonTrace::kBailian, trace);
  if (format == "agentic") return read_json_rows(text, path, JsonTrace::kAgentic, trace);
  throw ConfigError(SourceLocation{path}, unknown_name("trace format", format, format_names()));
}

}  // namespace

std::span<const TraceFormat> trace_formats() { return kFormats; }

Seconds Trace::period() const {
  if (rows.size() < 2) return Seconds(rows.empty() ? 0.0 : 1.0);
  const double span = rows.back().seconds;
  return Seconds(span + span / static_cast<double>(rows.size() - 1));
}

Trace parse_trace_text(std::string_view text, const std::string& path, std::string_view format) {
  const bool named = !format.empty();
  if (!named) format = format_of(text);
  if (format.empty()) {
    throw ConfigError(SourceLocation{path, 1},
                      fmt::format("does not look like a trace of any known format ({}): give 'format', or name the "
                                  "columns of a CSV arrival_s (in seconds), prompt_tokens, output_tokens",
                                  join(format_names(), ", ")));
  }
  Trace trace;
  read_rows(text, path, format, trace);
  if (trace.rows.empty()) throw ConfigError(SourceLocation{path}, "holds no requests");
  const auto earlier = [](const Trace::Row& a, const Trace::Row& b) { return a.seconds < b.seconds; };
  trace.was_sorted = std::is_sorted(trace.rows.begin(), trace.rows.end(), earlier);
  if (!trace.was_sorted) std::stable_sort(trace.rows.begin(), trace.rows.end(), earlier);
  const double first = trace.rows.front().seconds;
  for (Trace::Row& row : trace.rows) row.seconds -= first;
  return trace;
}

Trace read_trace(const std::string& path, std::string_view format) {
  check_packed(path);
  return parse_trace_text(read_file(path, kLargestTrace), path, format);
}

std::shared_ptr<const Trace> shared_trace(const std::string& path, std::string_view format) {
  struct Known {
    std::filesystem::file_time_type written;
    std::weak_ptr<const Trace> trace;
  };
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, Known> known;
  std::error_code ignored;  // a missing file fails in read_trace()
  const auto written = std::filesystem::last_write_time(path, ignored);
  const std::lock_guard lock(mutex);
  Known& entry = known[{path, std::string(format)}];
  std::shared_ptr<const Trace> trace = entry.trace.lock();
  if (trace && entry.written == written) return trace;
  trace = std::make_shared<const Trace>(read_trace(path, format));
  entry = {written, trace};
  return trace;
}

}  // namespace roofcast
