#include "reports/result_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_file.h"
#include "base/number_text.h"
#include "base/read_file.h"
#include "base/text.h"
#include "reports/html_text.h"
#include "reports/sweep_report.h"
#include "reports/table.h"

namespace roofcast::reports {
namespace {

constexpr std::size_t kFileLimit = std::size_t{1} << 30;
constexpr std::size_t kMaxPointsRead = 2'000'000;

std::string as_text(const Json& value) {
  if (value.is_string()) return clean_utf8(value.get<std::string>());
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// {a: {b: 1}} as a.b = 1; lists and more than four levels are not flattened.
void flatten(const Json& json, const std::string& prefix, int depth,
             std::vector<std::pair<std::string, std::string>>& out) {
  for (const auto& [key, value] : json.items()) {
    const std::string name = prefix.empty() ? clean_utf8(key) : prefix + "." + clean_utf8(key);
    if (value.is_object() && depth < 4) {
      flatten(value, name, depth + 1, out);
    } else if (!value.is_array() && !value.is_object()) {
      out.emplace_back(name, shortened(as_text(value), 80));
    }
  }
}

/// The settings that distinguish a deployment of a plan, or a rung, from others; without metrics.
std::vector<std::pair<std::string, std::string>> settings_of(const Json& entry) {
  static const std::set<std::string> kSettings{"name",      "gpu",      "gpus",   "mode",  "parallelism",
                                               "precision", "replicas", "engine", "model", "max_num_seqs"};
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [key, value] : entry.items()) {
    if (!kSettings.count(key)) continue;
    if (value.is_object()) {
      flatten(value, "", 1, out);
    } else {
      out.emplace_back(key, shortened(as_text(value), 80));
    }
  }
  return out;
}

bool is_saturated(const Json& json) {
  const auto found = json.find("saturated");
  return found != json.end() && found->is_boolean() && found->get<bool>();
}

void read_points(Result& result) {
  const std::string name(schema_of(result.kind).points);
  Json list = std::move(result.json[name]);
  result.json.erase(name);
  // A plan without an answer has the nearest deployment instead.
  if (list.empty() && result.kind == ResultKind::kPlan && result.json.contains("nearest")) {
    list.push_back(result.json["nearest"]);
    result.notes.push_back("no deployment meets the objectives: this is the nearest");
  }
  std::size_t failed = 0, saturated = 0;
  for (Json& entry : list) {
    ResultPoint point;
    if (result.kind == ResultKind::kSweep) {
      flatten(entry["keys"], "", 0, point.keys);
      point.result = std::move(entry["result"]);
    } else {
      point.keys = settings_of(entry);
      point.result = std::move(entry);
    }
    if (!point.result.is_object() || point.result.empty()) {
      ++failed;
      continue;
    }
    saturated += is_saturated(point.result) ? 1 : 0;
    result.points.push_back(std::move(point));
    if (result.points.size() == kMaxPointsRead) break;
  }
  if (saturated > 0)
    result.notes.push_back(fmt::format("{} of {} points are saturated: their latencies grow with the length of the run",
                                       saturated, list.size()));
  if (failed > 0) result.notes.push_back(fmt::format("{} of {} points have no result", failed, list.size()));
  if (result.points.empty())
    throw ConfigError(SourceLocation{result.path, 0, 0}, fmt::format("'{}' holds no result to show", name));
}

/// Whether a column of a sweep's table is one of the metrics of a point.
bool is_metric(std::string_view column) {
  for (const result_keys::KeyGroup& group : schema_of(ResultKind::kSweep).groups) {
    if (group.place == "points[].result." &&
        std::find(group.keys.begin(), group.keys.end(), column) != group.keys.end())
      return true;
  }
  return false;
}

/// A sweep's table: columns named like metrics are results, the others keys.
void read_sweep_table(Result& result) {
  const CsvTable& t = *result.table;
  for (std::size_t r = 0; r < t.rows() && r < kMaxPointsRead; ++r) {
    ResultPoint point;
    point.result = Json::object();
    bool impossible = false;
    for (std::size_t c = 0; c < t.columns().size(); ++c) {
      const std::string& name = t.columns()[c];
      double value = 0;
      const std::string_view text = t.at(r, c);
      if (name == "error") {
        impossible = !text.empty();
      } else if (!is_metric(name)) {
        point.keys.emplace_back(clean_utf8(name), clean_utf8(text));
      } else if (parse_number(text, value) == NumberFault::kNone) {
        point.result[name] = value;
      } else if (!text.empty()) {
        point.result[name] = text == "true" ? Json(true) : text == "false" ? Json(false) : Json(clean_utf8(text));
      }
    }
    if (impossible) continue;
    result.points.push_back(std::move(point));
  }
  result.kind = ResultKind::kSweep;
}

/// The JSON path of a CSV column: "memory.weight_bytes" for weight_bytes, "prefill.bound" for prefill_bound. The column
/// itself if it is at the top level.
std::string place_of(ResultKind kind, const std::string& column) {
  for (const result_keys::KeyGroup& group : schema_of(kind).groups) {
    if (group.place.find("[]") != std::string_view::npos) continue;
    for (const std::string_view key : group.keys) {
      const std::string full = std::string(group.place) + std::string(key);
      std::string flat = full;
      std::replace(flat.begin(), flat.end(), '.', '_');
      const bool last = full.ends_with("." + column);
      if (full == column || flat == column || last) return full;
    }
  }
  return column;
}

/// A row of a CSV as the JSON of its kind, as far as its columns allow.
Json record_of(const CsvTable& t, std::size_t row, ResultKind kind) {
  Json out = Json::object();
  for (std::size_t c = 0; c < t.columns().size(); ++c) {
    const std::string_view text = t.at(row, c);
    if (text.empty()) continue;
    double number = 0;
    Json value = text == "true" ? Json(true) : text == "false" ? Json(false) : Json(clean_utf8(text));
    if (parse_number(text, number) == NumberFault::kNone) value = number;
    Json* at = &out;
    for (const std::string& part : split(place_of(kind, t.columns()[c]), '.')) at = &(*at)[part];
    *at = std::move(value);
  }
  return out;
}

/// The CSV of an estimate or of a simulation: one row.
void read_record(Result& result, ResultKind kind) {
  result.kind = kind;
  result.json = record_of(*result.table, 0, kind);
  result.notes.push_back(
      fmt::format("a CSV holds the numbers of the {} alone; its JSON has the verdict and what the other plots need",
                  schema_of(kind).name));
}

/// The CSV of a plan: one row per deployment, the winner first.
void read_deployments(Result& result) {
  const CsvTable& t = *result.table;
  result.kind = ResultKind::kPlan;
  for (std::size_t r = 0; r < t.rows() && r < kMaxPointsRead; ++r) {
    ResultPoint point;
    point.result = record_of(t, r, ResultKind::kSimulation);
    point.keys = settings_of(point.result);
    result.points.push_back(std::move(point));
  }
  result.notes.emplace_back("a CSV holds the ranking of the plan alone; its JSON has the verdict and the frontier");
}

Result read_table(const std::string& path, std::string text) {
  Result result{.path = path, .table = CsvTable::parse(std::move(text), path)};
  const CsvTable& t = *result.table;
  const auto has = [&](std::string_view column) { return t.find(column).has_value(); };
  if (t.rows() == 0) throw ConfigError(SourceLocation{path, 0, 0}, "the table has no rows");
  if (has("latency_us") && has("predicted_us")) {
    result.kind = ResultKind::kKernelRows;
  } else if (has("predicted_ttft_ms") || has("predicted_tpot_ms") || (has("value") && has("predicted_value"))) {
    result.kind = ResultKind::kServingRows;
  } else if (has("request_id") && has("ttft_ms")) {
    result.kind = ResultKind::kRequestRows;
    for (const std::string_view column : result_keys::kRequestColumns) (void)t.column(column);
  } else if (has("spare_replicas")) {
    read_deployments(result);
  } else if (has("engine_version") && t.columns().back() != "error") {  // a sweep's last column is "error"
    read_record(result, has("workload") ? ResultKind::kSimulation : ResultKind::kEstimate);
  } else if (has("replicas_needed")) {
    throw ConfigError(SourceLocation{path, 1, 1}, "the hours of a plan's day alone; give the JSON of the plan");
  } else if (has("tpot_ms") || has("median_tpot_ms")) {
    read_sweep_table(result);
  } else {
    throw ConfigError(SourceLocation{path, 1, 1},
                      "not a table of roofcast: expected latency_us and predicted_us, predicted_ttft_ms, request_id, "
                      "or a sweep's columns");
  }
  return result;
}

std::string reconstructed_command(const Json& j) {
  std::string out = fmt::format("roofcast estimate --model {} --gpu {}", shell_word(text_at(j, "model")),
                                shell_word(text_at(j, "gpu")));
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) out += fmt::format(" --{} {}", flag, shell_word(value));
  };
  const auto add_count = [&](const char* flag, ResultKey key, double default_value) {
    if (const auto n = number_at(j, key); n && *n != default_value) add(flag, fmt::format("{:.0f}", *n));
  };
  add("engine", text_at(j, "engine"));
  add_count("tp", "parallelism.tp", 1);
  add_count("pp", "parallelism.pp", 1);
  add_count("dcp", "parallelism.dcp", 1);
  add_count("ep", "parallelism.ep", 1);
  add_count("attention-dp", "parallelism.attention_dp", 1);
  add("weights", text_at(j, "precision.weights"));
  add("activations", text_at(j, "precision.activations"));
  add("kv-cache-dtype", text_at(j, "precision.kv_cache"));
  add_count("batch", "batch", 0);
  add_count("prompt-tokens", "prompt_tokens", 0);
  add_count("output-tokens", "output_tokens", 0);
  if (text_at(j, "provenance.fidelity") == "ideal") out += " --fidelity ideal";
  return out + " --format json";
}

std::string label_of(const Json& j) {
  if (const std::string name = text_at(j, "name"); !name.empty()) {
    const std::string model = text_at(j, "model"), gpu = text_at(j, "gpu");  // of a sweep, where they do not vary
    const std::string of = model + (model.empty() || gpu.empty() ? "" : " on ") + gpu;
    return of.empty() ? name : name + ": " + of;
  }
  if (const auto winner = j.find("winner"); winner != j.end() && winner->is_object()) return label_of(*winner);
  if (const auto nearest = j.find("nearest"); nearest != j.end() && nearest->is_object()) {
    const std::string model = text_at(*nearest, "model");
    return model.empty() ? "" : model + ": no deployment found";
  }
  if (const auto services = j.find("services"); services != j.end() && services->is_array()) {
    std::string names;
    for (const Json& service : *services) names += (names.empty() ? "" : ", ") + text_at(service, "name");
    return names;
  }
  std::string out = text_at(j, "model");
  const double gpus = gpus_of(j);
  if (const std::string gpu = text_at(j, "gpu"); !gpu.empty())
    out += (out.empty() ? "" : ", ") + (gpus > 1 ? fmt::format("{:.0f} x ", gpus) : "") + gpu;
  return out;
}

void describe(Result& result) {
  const Json& j = result.json;
  if (result.kind == ResultKind::kSimulation && is_saturated(j))
    result.notes.push_back(
        "saturated: more requests arrive than can be served; latencies grow with the length of the run");
  if (result.kind == ResultKind::kEstimate) result.command = reconstructed_command(j);
  std::string version = text_at(j, "provenance.roofcast_version");
  if (version.empty()) version = text_at(j, "roofcast_version");
  if (!version.empty() && version != ROOFCAST_VERSION)
    result.notes.push_back(fmt::format("made by roofcast {}, shown by {}", version, ROOFCAST_VERSION));
  result.label = j.is_object() ? label_of(j) : "";
  if (result.label.empty()) result.label = std::filesystem::path(result.path).stem().string();
  result.label = shortened(clean_utf8(result.label), 60);
}

/// Whether the file is the store of a sweep, and small enough to read.
bool is_store(const std::string& path) {
  constexpr std::string_view kHead = "SQLite format 3";
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown) || std::filesystem::file_size(path, unknown) > kFileLimit)
    return false;
  std::array<char, kHead.size()> head{};
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  return std::string_view(head.data(), head.size()) == kHead;
}

}  // namespace

Result read_result(const std::string& path) {
  Result result;
  if (is_store(path)) {
    result.path = path;
    result.json = stored_sweep_json(path);
    result.kind = ResultKind::kSweep;
    read_points(result);
    describe(result);
    return result;
  }
  std::string text = read_file(path, kFileLimit);
  const std::size_t start = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (start == std::string::npos) throw ConfigError(SourceLocation{path, 0, 0}, "the file is empty");
  if (text[start] == '{' || text[start] == '[') {
    result.path = path;
    result.json = parse_json(path, text, "a result of roofcast --format json");
    text = {};
    result.kind = read_kind(result.json, path);
    const bool catalog = result.kind == ResultKind::kCatalog || result.kind == ResultKind::kCatalogEntry;
    if (catalog || result.kind == ResultKind::kLecture || result.kind == ResultKind::kImport)
      throw ConfigError(SourceLocation{path, 0, 0},
                        fmt::format("the JSON of roofcast {}: it has nothing to draw",
                                    catalog ? text_at(result.json, "of") : std::string(name_of(result.kind))));
    if (!schema_of(result.kind).points.empty()) read_points(result);
  } else {
    result = read_table(path, std::move(text));
  }
  describe(result);
  return result;
}

std::vector<Result> read_results(const std::vector<std::string>& paths) {
  std::vector<Result> results;
  for (const std::string& path : paths) results.push_back(read_result(path));
  std::vector<std::string> labels;
  for (const Result& r : results) labels.push_back(r.label);
  for (Result& r : results) {
    if (std::count(labels.begin(), labels.end(), r.label) > 1)
      r.label += " (" + clean_utf8(std::filesystem::path(r.path).stem().string()) + ")";
  }
  std::set<std::string> used;
  for (Result& r : results) {
    const std::string plain = r.label;
    for (int n = 2; !used.insert(r.label).second; ++n) r.label = fmt::format("{} #{}", plain, n);
  }
  return results;
}

}  // namespace roofcast::reports
