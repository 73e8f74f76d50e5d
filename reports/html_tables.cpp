#include "reports/html_tables.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include <fmt/format.h>

#include "reports/charts.h"
#include "reports/html_text.h"
#include "reports/table.h"
#include "reports/validation_pairs.h"

namespace roofcast::reports {
namespace {

using Row = std::vector<std::string>;
constexpr std::size_t kMaxRows = 300;

/// Whether a cell says why a row cannot be run.
bool is_refusal(std::string_view cell) {
  return cell == "does not fit" || cell.starts_with("saturated") || cell == "misses an objective" || cell == "missed";
}

}  // namespace

std::string html_table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows) {
  // Many columns get less space, and long cells are wrapped, to fit a page.
  constexpr std::size_t kMany = 12, kShort = 9;
  const bool many = header.size() > kMany;
  std::string out =
      fmt::format("<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"table\"><table{}><thead><tr>",
                  many ? " class=\"many\"" : "");
  for (const std::string& cell : header) {
    std::string words = html_text(cell);
    const bool breaks = cell.size() > kShort && cell.find(' ') == std::string::npos;  // "tokens/s/GPU"
    for (std::size_t at = words.find('/'); breaks && at != std::string::npos; at = words.find('/', at + 1))
      words.insert(at + 1, "<wbr>");
    out += "<th scope=\"col\">" + words + "</th>";
  }
  out += "</tr></thead><tbody>\n";
  for (std::size_t r = 0; r < rows.size() && r < kMaxRows; ++r) {
    out += "<tr>";
    for (const std::string& cell : rows[r]) {
      const bool words = many && cell.size() > kShort;
      out += (is_refusal(cell) ? "<td class=\"alarm\">"
              : words          ? "<td class=\"words\">"
                               : "<td>") +
             html_text(cell) + "</td>";
    }
    out += "</tr>\n";
  }
  out += "</tbody></table></div>";
  if (rows.size() > kMaxRows)
    out += fmt::format("<p class=\"soft\">The first {} of {} rows.</p>", kMaxRows, rows.size());
  return out;
}

namespace {

enum class As { kMilliseconds, kSeconds, kBytes, kNumber, kPercent };
struct Metric {
  const char* name;
  As as;
  std::variant<ResultKey, Headline> key;
};

const std::vector<Metric>& metrics() {
  static const std::vector<Metric> kMetrics{
      {"TTFT, median", As::kMilliseconds, ResultKey("median_ttft_ms")},
      {"TTFT, p99", As::kMilliseconds, ResultKey("p99_ttft_ms")},
      {"TTFT", As::kMilliseconds, ResultKey("ttft_ms")},
      {"TPOT", As::kMilliseconds, ResultKey("tpot_ms")},
      {"TPOT, median", As::kMilliseconds, ResultKey("median_tpot_ms")},
      {"TPOT, p99", As::kMilliseconds, ResultKey("p99_tpot_ms")},
      {"ITL, p99", As::kMilliseconds, ResultKey("p99_itl_ms")},
      {"E2E latency, median", As::kMilliseconds, ResultKey("median_e2el_ms")},
      {"E2E latency, p99", As::kMilliseconds, ResultKey("p99_e2el_ms")},
      {"request latency", As::kMilliseconds, ResultKey("request_latency_ms")},
      {"output tokens/s", As::kNumber, kThroughput},
      {"requests/s", As::kNumber, ResultKey("request_throughput")},
      {"requests/s within objectives", As::kNumber, ResultKey("request_goodput")},
      {"prefill", As::kMilliseconds, ResultKey("prefill.time_ms")},
      {"decode step", As::kMilliseconds, ResultKey("decode.step_ms")},
      {"weights per GPU", As::kBytes, ResultKey("memory.weight_bytes")},
      {"KV cache per GPU", As::kBytes, ResultKey("memory.kv_cache_bytes")},
      {"KV cache per token", As::kBytes, ResultKey("memory.kv_cache_bytes_per_token")},
      {"largest batch", As::kNumber, ResultKey("memory.max_batch")},
      {"longest context", As::kNumber, ResultKey("memory.max_context")},
      {"GPUs busy", As::kPercent, ResultKey("gpu_utilization")},
      {"MFU", As::kPercent, ResultKey("mfu")},
      {"MBU", As::kPercent, ResultKey("mbu")},
      {"KV cache at its peak", As::kPercent, ResultKey("kv_cache_peak_usage")},
      {"prompt tokens found cached", As::kPercent, ResultKey("prefix_cache_hit_rate")},
      {"preemptions", As::kNumber, ResultKey("preemptions")},
      {"completed requests", As::kNumber, ResultKey("completed")},
      {"duration", As::kSeconds, ResultKey("duration")},
      {"USD/h", As::kNumber, ResultKey("cost.usd_per_hour")},
      {"USD per million output tokens", As::kNumber, ResultKey("cost.usd_per_million_output_tokens")},
      {"J an output token", As::kNumber, ResultKey("cost.joules_per_output_token")}};
  return kMetrics;
}

std::string shown(double value, As as) {
  switch (as) {
    case As::kMilliseconds:
      return human_time(value / 1e3);
    case As::kSeconds:
      return human_time(value);
    case As::kBytes:
      return human_bytes(value);
    case As::kPercent:
      return significant(100 * value, 3) + " %";
    case As::kNumber:
      break;
  }
  return value == std::floor(value) && std::abs(value) < 1e9 ? fmt::format("{:.0f}", value) : significant(value, 4);
}

std::string cell_of(const Json& j, const Metric& m) {
  const auto v = std::visit([&](const auto& key) { return number_at(j, key); }, m.key);
  return v ? shown(*v, m.as) : "";
}

std::string operator_table(const Json& j) {
  if (!j.contains("operators") || !j["operators"].is_array() || j["operators"].empty()) return "";
  std::vector<Row> rows;
  for (const char* phase : {"prefill", "decode"}) {
    std::vector<const Json*> operators;
    for (const Json& op : j["operators"]) {
      if (text_at(op, "phase") == phase) operators.push_back(&op);
    }
    const auto time = [](const Json* op) { return number_at(*op, "time_us").value_or(0); };
    std::stable_sort(operators.begin(), operators.end(),
                     [&](const Json* a, const Json* b) { return time(a) > time(b); });
    for (const Json* op : operators) {
      const auto number = [&](ResultKey key) { return number_at(*op, key).value_or(0); };
      rows.push_back({text_at(*op, "name"), phase, significant(number("count"), 4), human_count(number("flops")),
                      human_bytes(number("bytes")), significant(number("arithmetic_intensity"), 3),
                      human_time(number("time_us") / 1e6), significant(100 * number("share"), 3) + " %",
                      text_at(*op, "bound")});
    }
  }
  return html_table({"operator", "phase", "calls", "FLOP", "bytes", "FLOP/B", "time", "share", "bound"}, rows);
}

/// Why nobody would use this point; empty if it is usable.
std::string note_of(const Json& metrics) {
  const auto is = [&](const char* key, bool value) {
    const auto found = metrics.find(key);
    return found != metrics.end() && found->is_boolean() && found->get<bool>() == value;
  };
  return is("fits", false)             ? "does not fit"
         : is("saturated", true)       ? "saturated"
         : is("objectives_met", false) ? "misses an objective"
                                       : "";
}

std::string point_table(const Result& r) {
  std::vector<std::string> keys = varying_keys(r.points);
  if (keys.empty() && !r.points.empty()) {
    for (const auto& [key, value] : r.points.front().keys) keys.push_back(key);
  }
  if (keys.size() > 8) keys.resize(8);
  std::vector<const Metric*> columns;
  const auto shown_end = r.points.begin() + static_cast<std::ptrdiff_t>(std::min(kMaxRows, r.points.size()));
  for (const Metric& m : metrics()) {
    const bool any =
        std::any_of(r.points.begin(), shown_end, [&](const ResultPoint& p) { return !cell_of(p.result, m).empty(); });
    if (any && columns.size() < 12) columns.push_back(&m);
  }
  Row header;
  for (const std::string& key : keys) header.push_back(words_of_key(key));
  const bool noted =
      std::any_of(r.points.begin(), shown_end, [](const ResultPoint& p) { return !note_of(p.result).empty(); });
  if (noted) header.emplace_back("note");
  for (const Metric* m : columns) header.emplace_back(m->name);
  std::vector<Row> rows;
  for (const ResultPoint& p : r.points) {
    Row row;
    for (const std::string& key : keys) {
      const auto it = std::find_if(p.keys.begin(), p.keys.end(), [&](const auto& k) { return k.first == key; });
      row.push_back(it == p.keys.end() ? "" : it->second);
    }
    if (noted) row.push_back(note_of(p.result));
    for (const Metric* m : columns) row.push_back(cell_of(p.result, *m));
    rows.push_back(std::move(row));
    if (rows.size() > kMaxRows) {
      rows.resize(r.points.size());
      break;
    }
  }
  return header.empty() ? "" : html_table(header, rows);
}

std::string validation_table(const Result& r) {
  std::vector<Row> rows;
  for (const ValidationPairs& v : validation_pairs(r)) {
    rows.push_back({v.name + ", all", significant(static_cast<double>(v.rows), 9), fmt::format("{:.1f}", v.mape)});
    for (const ValidationGroup& g : v.groups) {
      if (v.groups.size() > 1)
        rows.push_back({v.name + ", " + g.name, significant(static_cast<double>(g.measured.size()), 9),
                        fmt::format("{:.1f}", g.mape)});
    }
  }
  return rows.empty() ? "" : html_table({"group", "rows", "mean absolute error, %"}, rows);
}

}  // namespace

std::string headline_table(std::span<const Result> results) {
  std::vector<const Result*> columns;
  for (const Result& r : results) {
    if (r.kind == ResultKind::kEstimate || r.kind == ResultKind::kSimulation) columns.push_back(&r);
  }
  if (columns.empty()) return "";
  Row header{""};
  for (const Result* r : columns) header.push_back(r->label);
  std::vector<Row> rows;
  for (const Metric& m : metrics()) {
    Row row{m.name};
    bool any = false;
    for (const Result* r : columns) {
      row.push_back(cell_of(r->json, m));
      any = any || !row.back().empty();
    }
    if (any) rows.push_back(std::move(row));
  }
  return html_table(header, rows);
}

std::string detail_table(const Result& r) {
  switch (r.kind) {
    case ResultKind::kEstimate:
      return operator_table(r.json);
    case ResultKind::kSweep:
    case ResultKind::kPlan:
    case ResultKind::kLadder:
      return point_table(r);
    case ResultKind::kKernelRows:
    case ResultKind::kServingRows:
      return validation_table(r);
    case ResultKind::kSimulation:
    case ResultKind::kComparison:
    case ResultKind::kValidation:
    case ResultKind::kCalibration:
    case ResultKind::kRequestRows:
    case ResultKind::kServicesPlan:
    case ResultKind::kLecture:
    case ResultKind::kImport:
    case ResultKind::kCatalog:
    case ResultKind::kCatalogEntry:
      break;
  }
  return "";
}

}  // namespace roofcast::reports
