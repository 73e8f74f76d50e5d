#include "reports/sweep_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/question.h"
#include "reports/records_csv.h"
#include "reports/result_schema.h"
#include "reports/sweep_verdict.h"
#include "reports/table.h"

namespace roofcast::reports {
namespace {

struct Point {
  std::vector<std::string> values;
  MetricsList metrics;
  std::string error;
};

/// Calls `use` for every point that has a result or an error, in order, without holding a large sweep in memory.
template <class Use>
void for_each_point(const SweepSpec& sweep, const SweepOutcome& outcome, const SweepStore& store, Use use) {
  for (std::size_t i = 0; i < outcome.points.size(); ++i) {
    Point point{.values = point_values(sweep, outcome.points[i]), .metrics = {}, .error = {}};
    if (const auto error = outcome.errors.find(outcome.hashes[i]); error != outcome.errors.end()) {
      point.error = error->second;
    } else if (const auto text = store.find(outcome.hashes[i])) {
      point.metrics = metrics_from_text(*text);
    } else {
      continue;
    }
    use(point);
  }
}

const MetricValue* find(const MetricsList& metrics, std::string_view name) {
  for (const auto& [key, value] : metrics) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::string cell(const MetricValue* value, bool short_form) {
  if (value == nullptr) return "";
  if (const double* number = std::get_if<double>(value))
    return short_form ? significant(*number) : std::isfinite(*number) ? fmt::format("{}", *number) : "";
  if (const bool* truth = std::get_if<bool>(value))
    return short_form ? (*truth ? "yes" : "no") : (*truth ? "true" : "false");
  return std::get<std::string>(*value);
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
    add_metrics(p.metrics, entry["result"]);
  }
  verdict.add(keys_of(keys, p.values), p.error.empty() ? entry["result"] : Json());
  return entry;
}

/// The text of that JSON, point after point.
class SweepJson {
 public:
  SweepJson(const StoredSweep& sweep, const Json& question) : keys_(sweep.keys), verdict_(sweep.model, sweep.gpu) {
    Json head = head_of(sweep);
    if (!question.is_null()) head["question"] = question;
    out_ = head.dump(2, ' ', false, Json::error_handler_t::replace);
    out_.erase(out_.size() - 2);  // the closing brace: points follow
    out_ += ",\n  \"points\": [";
  }
  void add(const Point& p) {
    out_ += (first_ ? "\n    " : ",\n    ") +
            entry_of(keys_, p, verdict_).dump(-1, ' ', false, Json::error_handler_t::replace);
    first_ = false;
  }
  std::string text() const {
    return out_ + "\n  ],\n  \"verdict\": " +
           verdict_json(verdict_.verdict()).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n}\n";
  }

 private:
  std::vector<std::string> keys_;
  std::string out_;
  SweepVerdict verdict_;
  bool first_ = true;
};

std::string json_report(const SweepSpec& sweep, const SweepOutcome& outcome, const SweepStore& store,
                        Fidelity fidelity) {
  SweepJson json(stored(sweep), question_json(sweep.scenario, fidelity));
  for_each_point(sweep, outcome, store, [&](const Point& p) { json.add(p); });
  return json.text();
}

/// All names in order of first occurrence.
std::vector<std::string> all_names(const SweepSpec& sweep, const SweepOutcome& outcome, const SweepStore& store) {
  std::vector<std::string> names;
  for_each_point(sweep, outcome, store, [&](const Point& p) {
    for (const auto& [name, value] : p.metrics) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  });
  return names;
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

/// The model and the GPU if they are the same in all points.
std::vector<std::pair<std::string, std::string>> unvaried(const StoredSweep& sweep) {
  std::vector<std::pair<std::string, std::string>> out;
  if (!sweep.model.empty()) out.emplace_back("model", sweep.model);
  if (!sweep.gpu.empty()) out.emplace_back("gpu", sweep.gpu);
  return out;
}

}  // namespace

std::string sweep_report(const SweepSpec& sweep, const SweepOutcome& outcome, const SweepStore& store,
                         const std::string& format, Fidelity fidelity) {
  if (format == "json") return json_report(sweep, outcome, store, fidelity);
  const bool csv = format == "csv";
  std::vector<std::string> names = csv ? all_names(sweep, outcome, store) : main_names(sweep.simulate);
  std::vector<std::string> header = point_keys(sweep);
  const StoredSweep told = stored(sweep);
  header.insert(header.end(), names.begin(), names.end());
  const std::vector<std::pair<std::string, std::string>> same = csv ? unvaried(told) : decltype(unvaried(told))();
  for (const auto& [name, value] : same) header.push_back(name);
  header.emplace_back(csv ? "error" : "note");
  Table table(header);
  table.keys(point_keys(sweep).size());
  std::string lines = csv ? table.csv() : "";  // of a million points: cells take four times as much as their text
  SweepVerdict verdict(told.model, told.gpu);
  for_each_point(sweep, outcome, store, [&](const Point& p) {
    if (!csv) {
      Json metrics;
      if (p.error.empty()) add_metrics(p.metrics, metrics);
      verdict.add(keys_of(point_keys(sweep), p.values), metrics);
    }
    std::vector<std::string> cells = p.values;
    for (const std::string& name : names) cells.push_back(cell(find(p.metrics, name), !csv));
    for (const auto& [name, value] : same) cells.push_back(value);
    const MetricValue* saturated = find(p.metrics, "saturated");
    const MetricValue* reason = csv ? nullptr : find(p.metrics, "reason");
    std::string note = p.error.empty() && reason != nullptr ? "does not fit" : p.error;
    const bool* grows = saturated != nullptr ? std::get_if<bool>(saturated) : nullptr;
    if (!csv && grows != nullptr && *grows) note = "saturated: the queue grows";
    cells.push_back(std::move(note));
    if (csv)
      lines += Table(std::move(cells)).csv();
    else
      table.row(std::move(cells));
  });
  return csv ? lines : table.text() + "\n" + verdict_text(verdict.verdict());
}

Json stored_sweep_json(const std::string& path) {
  std::vector<StoredPoint> points;
  const StoredSweep sweep = read_store(path, [&](StoredPoint&& p) { points.push_back(std::move(p)); });
  SweepVerdict verdict(sweep.model, sweep.gpu);
  Json out = head_of(sweep);
  Json& list = out["points"] = Json::array();
  for (const StoredPoint& p : points)
    list.push_back(
        entry_of(sweep.keys, {.values = p.values, .metrics = metrics_from_text(p.result), .error = {}}, verdict));
  out["verdict"] = verdict_json(verdict.verdict());
  return out;
}

}  // namespace roofcast::reports
