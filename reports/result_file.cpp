#include "reports/result_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_file.h"
#include "base/number_text.h"
#include "base/read_file.h"
#include "base/text.h"
#include "reports/html_text.h"
#include "reports/sweep_report.h"
#include "reports/table.h"

namespace roofcast {
namespace {

constexpr std::size_t kFileLimit = std::size_t{1} << 30;
constexpr std::size_t kMaxPointsRead = 2'000'000;

bool has_array(const Json& json, const char* key) { return json.contains(key) && json[key].is_array(); }

std::optional<ResultKind> kind_of(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  if (has_array(json, "points")) return ResultKind::kSweep;
  for (const char* key : {"deployments", "candidates", "plans"}) {
    if (has_array(json, key)) return ResultKind::kPlan;
  }
  for (const char* key : {"rungs", "ladder"}) {
    if (has_array(json, key)) return ResultKind::kLadder;
  }
  if (json.contains("decode") && json.contains("memory")) return ResultKind::kEstimate;
  if (json.contains("request_throughput") || json.contains("mean_ttft_ms") || json.contains("mean_tpot_ms"))
    return ResultKind::kSimulation;
  return std::nullopt;
}

std::string as_text(const Json& value) {
  if (value.is_string()) return clean_utf8(value.get<std::string>());
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// {a: {b: 1}} as a.b = 1; lists and what is deeper than four levels stay whole.
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

/// What tells one deployment of a plan, or one rung, from another: its words and settings, not its metrics.
std::vector<std::pair<std::string, std::string>> settings_of(const Json& entry) {
  static const std::set<std::string> kSettings{"name",  "technique",    "label",     "gpu",      "gpus",
                                               "mode",  "parallelism",  "precision", "replicas", "engine",
                                               "model", "max_num_seqs", "batch"};
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [key, value] : entry.items()) {
    if (!kSettings.count(key)) continue;
    if (value.is_object()) {
      flatten(value, "", 1, out);
    } else if (!value.is_array()) {
      out.emplace_back(key, shortened(as_text(value), 80));
    }
  }
  return out;
}

void read_points(Result& result) {
  const char* key = nullptr;
  for (const char* name : {"points", "deployments", "candidates", "plans", "rungs", "ladder"}) {
    if (key == nullptr && has_array(result.json, name)) key = name;
  }
  Json list = std::move(result.json[key]);
  result.json.erase(key);
  std::size_t failed = 0;
  for (Json& entry : list) {
    if (!entry.is_object()) continue;
    ResultPoint point;
    if (entry.contains("keys") && entry["keys"].is_object()) {
      flatten(entry["keys"], "", 0, point.keys);
    } else {
      point.keys = settings_of(entry);
    }
    point.result = entry.contains("result") ? std::move(entry["result"]) : std::move(entry);
    if (!point.result.is_object() || point.result.empty()) {
      ++failed;
      continue;
    }
    result.points.push_back(std::move(point));
    if (result.points.size() == kMaxPointsRead) break;
  }
  if (failed > 0) result.notes.push_back(fmt::format("{} of {} points have no result", failed, list.size()));
  if (result.points.empty())
    throw ConfigError(Mark{result.path, 0, 0}, fmt::format("'{}' holds no result to show", key));
}

/// A sweep's table: columns that are metrics are results, the others keys.
void read_sweep_table(Result& result) {
  static const std::vector<std::string> kEndings{"_ms",       "_bytes", "_per_s",      "_throughput", "_tokens",
                                                 "_us",       "usage",  "utilization", "mfu",         "mbu",
                                                 "completed", "failed", "duration",    "joules"};
  const CsvTable& t = *result.table;
  for (std::size_t r = 0; r < t.rows() && r < kMaxPointsRead; ++r) {
    ResultPoint point;
    point.result = Json::object();
    for (std::size_t c = 0; c < t.columns().size(); ++c) {
      const std::string& name = t.columns()[c];
      const bool metric = name.find("usd") != std::string::npos ||
                          std::any_of(kEndings.begin(), kEndings.end(), [&](const std::string& e) {
                            return name.size() >= e.size() && name.compare(name.size() - e.size(), e.size(), e) == 0 &&
                                   name != "prompt_tokens" && name != "output_tokens";
                          });
      double value = 0;
      if (!metric) {
        point.keys.emplace_back(clean_utf8(name), clean_utf8(t.at(r, c)));
      } else if (parse_number(t.at(r, c), value) == NumberFault::kNone) {
        point.result[name] = value;
      }
    }
    result.points.push_back(std::move(point));
  }
  result.kind = ResultKind::kSweep;
}

Result read_table(const std::string& path, std::string text) {
  Result result{.path = path, .table = CsvTable::parse(std::move(text), path)};
  const CsvTable& t = *result.table;
  const auto has = [&](std::string_view column) { return t.find(column).has_value(); };
  if (t.rows() == 0) throw ConfigError(Mark{path, 0, 0}, "the table has no rows");
  if (has("latency_us") && has("predicted_us")) {
    result.kind = ResultKind::kKernelRows;
  } else if (has("predicted_ttft_ms") || has("predicted_tpot_ms") || (has("value") && has("predicted_value"))) {
    result.kind = ResultKind::kServingRows;
  } else if (has("request_id") && has("ttft_ms")) {
    result.kind = ResultKind::kRequestRows;
  } else if (has("tpot_ms") || has("mean_tpot_ms") || has("median_tpot_ms") || has("output_throughput") ||
             has("output_tokens_per_s")) {
    read_sweep_table(result);
  } else {
    throw ConfigError(Mark{path, 1, 1},
                      "not a table of roofcast: expected latency_us and predicted_us, predicted_ttft_ms, request_id, "
                      "or a sweep's columns");
  }
  return result;
}

std::string whole(double number) { return fmt::format("{:.0f}", number); }

std::string reconstructed_command(const Json& j) {
  std::string out = fmt::format("roofcast estimate --model {} --gpu {}", shell_word(text_at(j, "model")),
                                shell_word(text_at(j, "gpu")));
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) out += fmt::format(" --{} {}", flag, shell_word(value));
  };
  add("engine", text_at(j, "engine"));
  for (const char* axis : {"tp", "pp", "ep"}) {
    const double n = number_at(j, std::string("parallelism.") + axis).value_or(1);
    if (n > 1) add(axis, whole(n));
  }
  if (number_at(j, "parallelism.attention_dp").value_or(1) > 1)
    add("attention-dp", whole(*number_at(j, "parallelism.attention_dp")));
  add("weights", text_at(j, "precision.weights"));
  add("activations", text_at(j, "precision.activations"));
  add("kv-cache-dtype", text_at(j, "precision.kv_cache"));
  for (const auto& [flag, key] :
       {std::pair{"batch", "batch"}, {"prompt-tokens", "prompt_tokens"}, {"output-tokens", "output_tokens"}}) {
    if (const auto n = number_at(j, key)) add(flag, whole(*n));
  }
  if (text_at(j, "provenance.fidelity") == "ideal") out += " --fidelity ideal";
  return out + " --format json";
}

std::string label_of(const Json& j) {
  if (const std::string name = text_at(j, "name"); !name.empty()) return name;
  std::string out = text_at(j, "model");
  const double gpus = gpus_of(j);
  if (const std::string gpu = text_at(j, "gpu"); !gpu.empty())
    out += (out.empty() ? "" : ", ") + (gpus > 1 ? fmt::format("{:.0f} x ", gpus) : "") + gpu;
  return out;
}

void describe(Result& result) {
  const Json& j = result.json;
  for (const char* key : {"command", "provenance.command"}) {
    if (result.command.empty()) result.command = text_at(j, key);
  }
  if (result.command.empty() && result.kind == ResultKind::kEstimate) result.command = reconstructed_command(j);
  std::string version = text_at(j, "provenance.roofcast_version");
  if (version.empty()) version = text_at(j, "roofcast_version");
  if (!version.empty() && version != ROOFCAST_VERSION) {
    result.notes.push_back(
        fmt::format("made by roofcast {}, shown by {}: plots that need keys it does not have are left out", version,
                    ROOFCAST_VERSION));
  }
  result.label = j.is_object() ? label_of(j) : "";
  if (result.label.empty()) result.label = std::filesystem::path(result.path).stem().string();
  result.label = shortened(clean_utf8(result.label), 60);
}

}  // namespace

std::string_view name_of(ResultKind kind) {
  static constexpr std::array<std::string_view, 8> kNames{
      "estimate", "simulation", "sweep", "plan", "ladder", "kernel validation", "serving validation", "requests"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<double> number_at(const Json& json, std::string_view path) {
  const Json* at = &json;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const auto it = at->is_object() ? at->find(std::string(path.substr(begin, end - begin))) : at->end();
    if (!at->is_object() || it == at->end()) return std::nullopt;
    at = &*it;
    begin = end + 1;
  }
  if (!at->is_number()) return std::nullopt;
  const double value = at->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string text_at(const Json& json, std::string_view path) {
  const Json* at = &json;
  for (const std::string& key : split(path, '.')) {
    if (!at->is_object() || !at->contains(key)) return "";
    at = &(*at)[key];
  }
  return at->is_string() ? clean_utf8(at->get<std::string>()) : "";
}

std::optional<double> first_number(const Json& json, std::initializer_list<std::string_view> paths) {
  for (const std::string_view path : paths) {
    if (const auto value = number_at(json, path)) return value;
  }
  return std::nullopt;
}

double gpus_of(const Json& json) {
  if (const auto total = first_number(json, {"gpus", "total_gpus", "machine.gpus"})) return std::max(1.0, *total);
  double gpus = 1;
  for (const char* axis :
       {"parallelism.tp", "parallelism.pp", "parallelism.attention_dp", "parallelism.replicas", "replicas"}) {
    gpus *= std::max(1.0, number_at(json, axis).value_or(1));
  }
  return gpus;
}

Result read_result(const std::string& path) {
  std::string text = read_file(path, kFileLimit);
  if (text.rfind("SQLite format 3", 0) == 0) text = stored_sweep_json(path);
  const std::size_t start = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (start == std::string::npos) throw ConfigError(Mark{path, 0, 0}, "the file is empty");
  Result result;
  if (text[start] == '{' || text[start] == '[') {
    result.path = path;
    result.json = parse_json(path, text, "a result of roofcast --format json");
    text = {};
    const auto kind = kind_of(result.json);
    if (!kind)
      throw ConfigError(Mark{path, 0, 0},
                        "not a result of roofcast: expected the JSON of estimate, simulate, sweep, plan or ladder");
    result.kind = *kind;
    if (*kind == ResultKind::kSweep || *kind == ResultKind::kPlan || *kind == ResultKind::kLadder) read_points(result);
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

}  // namespace roofcast
