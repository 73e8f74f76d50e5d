#include "sim/plan/measured/measurement_floor.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/from_chars.h"

namespace roofcast {
namespace {

/// Columns along which a run has neighbours.
constexpr std::string_view kAxes[] = {"concurrency", "batch", "request_rate", "osl"};

/// Columns that are not settings.
bool tells_nothing(std::string_view column) {
  constexpr std::string_view kNames[] = {
      "id",      "measured", "engine_version", "version",   "source",       "launch_confidence", "suspect",   "note",
      "ttft_ms", "tpot_ms",  "value",          "submitter", "tokens_per_s", "samples_per_s",     "target_qps"};
  return column.starts_with("predicted_") ||
         std::find(std::begin(kSteadyMetrics), std::end(kSteadyMetrics), column) != std::end(kSteadyMetrics) ||
         std::find(std::begin(kNames), std::end(kNames), column) != std::end(kNames);
}

/// A row's settings as one string, without those of the column `but`.
std::string settings_of(const CsvTable& table, std::size_t row, std::string_view but) {
  std::string word;
  for (std::size_t c = 0; c < table.columns().size(); ++c) {
    if (tells_nothing(table.columns()[c]) || table.columns()[c] == but) continue;
    word.append(table.at(row, c)).push_back('\x1f');
  }
  return word;
}

struct Point {
  double at, value;
};

/// The value of a field on an axis; 0 if it is blank, infinite or not a number.
double place_of(std::string_view field) {
  double at = 0;
  const auto read = from_chars(field.data(), field.data() + field.size(), at);
  return read.ec == std::errc() && std::isfinite(at) && at > 0 ? at : 0;
}

/// The nearest value on one side, and the runs there.
struct Nearest {
  double at = 0, logarithms = 0, runs = 0;

  void take(const Point& p, bool nearer) {
    if (runs == 0 || nearer) *this = {.at = p.at};
    logarithms += std::log(p.value);
    runs += 1;
  }
  double logarithm() const { return logarithms / runs; }
};

/// Log-log interpolation between the nearest neighbours on both sides; repeats of a neighbour count as their mean.
std::optional<double> interpolated(const std::vector<Point>& mates, double at) {
  Nearest below, above;
  for (const Point& p : mates) {
    if (p.at < at && p.at >= below.at) below.take(p, p.at > below.at);
    if (p.at > at && (above.runs == 0 || p.at <= above.at)) above.take(p, p.at < above.at);
  }
  if (below.runs == 0 || above.runs == 0) return std::nullopt;
  const double share = std::log(at / below.at) / std::log(above.at / below.at);
  return std::exp(std::lerp(below.logarithm(), above.logarithm(), share));
}

/// Rows of one group and metric.
struct Rows {
  std::vector<std::size_t> rows;
  std::vector<double> values;
};

void add_repeats(MeasurementFloor& floor, const CsvTable& table, const Rows& of) {
  std::map<std::string, std::vector<double>> same;
  for (std::size_t i = 0; i < of.rows.size(); ++i) same[settings_of(table, of.rows[i], {})].push_back(of.values[i]);
  double sum = 0;
  for (const auto& [settings, values] : same) {
    if (values.size() < 2) continue;
    floor.repeated += values.size();
    sum += least_error(values) * static_cast<double>(values.size());
  }
  if (floor.repeated > 0) floor.repeats = sum / static_cast<double>(floor.repeated);
}

void add_neighbours(MeasurementFloor& floor, const CsvTable& table, const Rows& of) {
  std::vector<double> logs(of.rows.size(), 0.0), estimates(of.rows.size(), 0.0);
  for (std::string_view axis : kAxes) {
    const auto column = table.find(axis);
    if (!column) continue;
    std::map<std::string, std::vector<Point>> lines;
    std::vector<std::string> line_of;
    for (std::size_t i = 0; i < of.rows.size(); ++i) {
      line_of.push_back(settings_of(table, of.rows[i], axis));
      const double at = place_of(table.at(of.rows[i], *column));
      if (at > 0) lines[line_of.back()].push_back({at, of.values[i]});
    }
    for (std::size_t i = 0; i < of.rows.size(); ++i) {
      const auto estimate = interpolated(lines[line_of[i]], place_of(table.at(of.rows[i], *column)));
      if (!estimate) continue;
      logs[i] += std::log(*estimate / of.values[i]);
      estimates[i] += 1;
    }
  }
  double sum = 0;
  for (std::size_t i = 0; i < of.rows.size(); ++i) {
    if (!(estimates[i] > 0)) continue;
    ++floor.between;
    sum += std::abs(std::exp(logs[i] / estimates[i]) - 1);
  }
  if (floor.between > 0) floor.neighbours = sum / static_cast<double>(floor.between);
}

}  // namespace

double least_error(const std::vector<double>& values) {
  double least = INFINITY;
  for (double c : values) {
    double sum = 0;
    for (double value : values) sum += std::abs(c / value - 1);
    least = std::min(least, sum / static_cast<double>(values.size()));
  }
  return values.empty() ? 0 : least;
}

std::map<std::pair<std::string, std::string>, MeasurementFloor> measurement_floors(const MeasuredRuns& runs,
                                                                                   const CsvTable& table) {
  std::map<std::pair<std::string, std::string>, Rows> groups;
  const auto add = [&](std::size_t row, const std::string& metric, std::string_view column) {
    const auto at = table.find(column);
    const double value = at ? table.number(row, *at, 0.0) : 0.0;
    if (!(value > 0)) return;
    Rows& of = groups[{runs.runs[row].group, metric}];
    of.rows.push_back(row);
    of.values.push_back(value);
  };
  for (std::size_t row = 0; row < runs.runs.size(); ++row) {
    if (!runs.runs[row].scored) continue;
    if (closed_loop(runs.kind)) {
      add(row, "tpot_ms", "tpot_ms");
      add(row, "ttft_ms", "ttft_ms");
    } else if (runs.kind == RunKind::kSteady) {
      for (const std::string_view metric : kSteadyMetrics) add(row, std::string(metric), metric);
    } else {
      const bool named = runs.kind == RunKind::kSubmission;
      add(row, runs.runs[row].metric, named ? std::string_view(runs.runs[row].metric) : "value");
    }
  }
  std::map<std::pair<std::string, std::string>, MeasurementFloor> floors;
  for (const auto& [key, of] : groups) {
    add_repeats(floors[key], table, of);
    add_neighbours(floors[key], table, of);
  }
  return floors;
}

}  // namespace roofcast
