#include "reports/sweep_report.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/csv.h"
#include "reports/question.h"
#include "reports/records_csv.h"
#include "reports/result_schema.h"
#include "reports/sweep_verdict.h"
#include "reports/table.h"

namespace roofcast::reports {
namespace {

struct Point {
  std::vector<std::string> values;
  std::string result;  ///< as text
  std::string error;
};

/// Calls `use` for every point that has a result or an error, in order, without holding a large sweep in memory.
template <class Use>
void for_each_point(const SweepSpec& sweep, const SweepOutcome& outcome, const SweepStore& store, Use use) {
  for (std::size_t i = 0; i < outcome.points.size(); ++i) {
    Point point;
    if (const auto error = outcome.errors.find(outcome.hashes[i]); error != outcome.errors.end()) {
      point.error = error->second;
    } else if (auto text = store.find(outcome.hashes[i])) {
      point.result = std::move(*text);
    } else {
      continue;
    }
    point.values = point_values(sweep, outcome.points[i]);
    use(point);
  }
}

const MetricValue* find(const MetricsList& metrics, std::string_view name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::string cell(const MetricValue* value) {
  if (value == nullptr) return "";
  if (const double* number = std::get_if<double>(value)) return significant(*number);
  if (const bool* truth = std::get_if<bool>(value)) return *truth ? "yes" : "no";
  return std::get<std::string>(*value);
}

/// A value of a result's text as a CSV holds it: numbers as they are, nothing for infinity and NaN.
std::string_view csv_cell(std::string_view value) {
  if (value.starts_with('\'')) return value.substr(1);
  if (value == "true" || value == "false") return value;
  return std::isfinite(metric_number(value)) ? value : std::string_view();
}

/// A value of the grid with its type: numbers stay numbers.
Json key_json(const std::string& text) {
  const Json parsed = Json::parse(text, nullptr, false);
  return parsed.is_number() || parsed.is_boolean() ? parsed : Json(text);
}

SweepVerdict::Keys keys_of(const std::vector<std::string>& names, const std::vector<std::string>& values) {
  SweepVerdict::Keys out;
  for (std::size_t i = 0; i < names.size(); ++i) out.emplace_back(names[i], values[i]);
  return out;
}

/// The part of a sweep's JSON before its points.
Json head_of(const StoredSweep& sweep) {
  Json head = result_head(ResultKind::kSweep);
  head.update({{"name", sweep.name}, {"run", sweep.run}, {"roofcast_version", ROOFCAST_VERSION}, {"keys", sweep.keys}});
  if (!sweep.model.empty()) head["model"] = sweep.model;
  if (!sweep.gpu.empty()) head["gpu"] = sweep.gpu;
  return head;
}

/// One point as in the JSON; also adds it to the verdict.
Json entry_of(const std::vector<std::string>& keys, const Point& p, SweepVerdict& verdict) {
  Json entry{{"keys", Json::object()}};
  for (std::size_t k = 0; k < keys.size(); ++k) entry["keys"][keys[k]] = key_json(p.values[k]);
  if (!p.error.empty()) {
    entry["error"] = p.error;
  } else {
    add_metrics(metrics_from_text(p.result), entry["result"]);
  }
  verdict.add(keys_of(keys, p.values), p.error.empty() ? entry["result"] : Json());
  return entry;
}

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Writes that JSON point by point.
void write_json(const SweepSpec& sweep, const SweepOutcome& outcome, const SweepStore& store, Fidelity fidelity,
                const Write& write) {
  const StoredSweep told = stored(sweep);
  Json head = head_of(told);
  if (const Json question = question_json(sweep.scenario, fidelity); !question.is_null()) head["question"] = question;
  std::string begin = head.dump(2, ' ', false, Json::error_handler_t::replace);
  begin.erase(begin.size() - 2);  // the closing brace: points follow
  write(begin + ",\n  \"points\": [");
  SweepVerdict verdict(told.model, told.gpu);
  std::string_view between = "\n    ";
  for_each_point(sweep, outcome, store, [&](const Point& p) {
    write(between);
    write(text_of(entry_of(told.keys, p, verdict)));
    between = ",\n    ";
  });
  write("\n  ],\n  \"verdict\": " + text_of(verdict_json(verdict.verdict())) + "\n}\n");
}

/// The model and the GPU if they are the same in all points.
std::vector<std::pair<std::string, std::string>> unvaried(const StoredSweep& sweep) {
  std::vector<std::pair<std::string, std::string>> out;
  if (!sweep.model.empty()) out.emplace_back("model", sweep.model);
  if (!sweep.gpu.empty()) out.emplace_back("gpu", sweep.gpu);
  return out;
}

/// Names of metrics and their columns. Results mostly have the same names in the same order.
class Columns {
 public:
  /// The column of a name; a new one for a new name. `next`: where it probably is.
  std::size_t of(std::string_view name, std::size_t next) {
    if (next < names_.size() && names_[next] == name) return next;
    const auto at = static_cast<std::size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
    if (at == names_.size()) names_.emplace_back(name);
    return at;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;  ///< in order of first occurrence
};

/// Writes all metrics line by line.
void write_csv(const SweepSpec& sweep, const SweepOutcome& outcome, const SweepStore& store, const Write& write) {
  Columns columns;
  const auto for_each_metric = [&columns](std::string_view result, const auto& use) {
    std::size_t next = 0;
    while (const auto metric = next_metric(result)) {
      const std::size_t column = columns.of(metric->first, next);
      use(column, metric->second);
      next = column + 1;
    }
  };
  for_each_point(sweep, outcome, store, [&](const Point& p) {
    for_each_metric(p.result, [](std::size_t, std::string_view value) { (void)csv_cell(value); });
  });
  const auto same = unvaried(stored(sweep));
  std::string line;
  bool first = true;
  const auto add = [&](std::string_view text) { add_csv_field(line, text, std::exchange(first, false)); };
  for (const std::string& key : point_keys(sweep)) add(key);
  for (const std::string& name : columns.names()) add(name);
  for (const auto& [name, value] : same) add(name);
  add("error");
  write(line + "\n");
  std::vector<std::string_view> cells;
  for_each_point(sweep, outcome, store, [&](const Point& p) {
    line.clear();
    first = true;
    for (const std::string& value : p.values) add(value);
    cells.assign(columns.names().size(), {});
    for_each_metric(p.result, [&](std::size_t column, std::string_view value) {
      if (column < cells.size()) cells[column] = csv_cell(value);  // another process may have added one since
    });
    for (const std::string_view cell : cells) add(cell);
    for (const auto& [name, value] : same) add(value);
    add(p.error);
    line += '\n';
    write(line);
  });
}

std::vector<std::string> main_names(bool simulate) {
  if (simulate) {
    return {"request_throughput", "output_throughput", "median_ttft_ms",      "p99_ttft_ms",
            "median_tpot_ms",     "p99_tpot_ms",       "kv_cache_peak_usage", "usd_per_million_total_tokens",
            "objectives_met"};
  }
  return {"fits",
          "ttft_ms",
          "tpot_ms",
          "output_tokens_per_s",
          "output_tokens_per_s_per_user",
          "decode_bound",
          "kv_cache_bytes",
          "usd_per_million_total_tokens"};
}

}  // namespace

void sweep_report(const SweepSpec& sweep, const SweepOutcome& outcome, const SweepStore& store,
                  const std::string& format, Fidelity fidelity, const Write& write) {
  if (format == "json") return write_json(sweep, outcome, store, fidelity, write);
  if (format == "csv") return write_csv(sweep, outcome, store, write);
  const std::vector<std::string> names = main_names(sweep.simulate), keys = point_keys(sweep);
  std::vector<std::string> header = keys;
  const StoredSweep told = stored(sweep);
  header.insert(header.end(), names.begin(), names.end());
  header.emplace_back("note");
  Table table(header);
  table.keys(keys.size());
  SweepVerdict verdict(told.model, told.gpu);
  for_each_point(sweep, outcome, store, [&](const Point& p) {
    const MetricsList all = metrics_from_text(p.result);
    Json metrics;
    if (p.error.empty()) add_metrics(all, metrics);
    verdict.add(keys_of(keys, p.values), metrics);
    std::vector<std::string> cells = p.values;
    for (const std::string& name : names) cells.push_back(cell(find(all, name)));
    const MetricValue* saturated = find(all, "saturated");
    const MetricValue* reason = find(all, "reason");
    std::string note = p.error.empty() && reason != nullptr ? "does not fit" : p.error;
    const bool* grows = saturated != nullptr ? std::get_if<bool>(saturated) : nullptr;
    if (grows != nullptr && *grows) note = "saturated: the queue grows";
    cells.push_back(std::move(note));
    table.row(std::move(cells));
  });
  write(table.text() + "\n" + verdict_text(verdict.verdict()));
}

std::string sweep_report(const SweepSpec& sweep, const SweepOutcome& outcome, const SweepStore& store,
                         const std::string& format, Fidelity fidelity) {
  std::string out;
  sweep_report(sweep, outcome, store, format, fidelity, [&](std::string_view text) { out += text; });
  return out;
}

Json stored_sweep_json(const std::string& path) {
  std::vector<StoredPoint> points;
  const StoredSweep sweep = read_store(path, [&](StoredPoint&& p) { points.push_back(std::move(p)); });
  SweepVerdict verdict(sweep.model, sweep.gpu);
  Json out = head_of(sweep);
  Json& list = out["points"] = Json::array();
  for (const StoredPoint& p : points)
    list.push_back(entry_of(sweep.keys, {.values = p.values, .result = p.result, .error = {}}, verdict));
  out["verdict"] = verdict_json(verdict.verdict());
  return out;
}

}  // namespace roofcast::reports
