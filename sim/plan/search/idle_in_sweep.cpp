#include "sim/plan/search/idle_in_sweep.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "sim/plan/idle_settings.h"

namespace roofcast {
namespace {

/// The result of a point; empty if there is none.
std::string result_of(const SweepOutcome& outcome, const SweepStore& store, std::uint64_t point) {
  const auto at = std::lower_bound(outcome.points.begin(), outcome.points.end(), point);
  if (at == outcome.points.end() || *at != point) return "";
  return store.find(outcome.hashes[static_cast<std::size_t>(at - outcome.points.begin())]).value_or("");
}

bool fits(const std::string& result) {
  const MetricsList metrics = metrics_from_text(result);
  return std::none_of(metrics.begin(), metrics.end(),
                      [](const auto& metric) { return metric.first == "fits" && metric.second == MetricValue(false); });
}

/// Compares the points that differ in this axis alone. `stride`: points between two values of the axis.
bool is_idle(const SweepAxis& axis, std::uint64_t stride, const SweepOutcome& outcome, const SweepStore& store) {
  std::unordered_map<std::uint64_t, std::size_t> seen;  // a hash of the first result, by the first value's point
  bool compared = false;
  for (const std::uint64_t point : outcome.points) {
    const std::string here = result_of(outcome, store, point);
    if (here.empty()) continue;
    const std::uint64_t first = point - point / stride % axis.values.size() * stride;
    const std::size_t hash = std::hash<std::string>()(here);
    const auto [at, added] = seen.emplace(first, hash);
    if (at->second != hash) return false;
    compared = compared || (!added && fits(here));
  }
  return compared;
}

bool varies(const SweepSpec& sweep, const std::string& line) {
  const std::vector<std::string> keys = point_keys(sweep);
  return std::find(keys.begin(), keys.end(), line.substr(0, line.find_first_of(" :"))) != keys.end();
}

}  // namespace

std::vector<std::string> idle_axes(const SweepSpec& sweep, const SweepOutcome& outcome, const SweepStore& store) {
  std::vector<std::string> idle;
  std::uint64_t stride = 1;  // the last axis varies fastest
  for (auto axis = sweep.axes.rbegin(); axis != sweep.axes.rend(); ++axis) {
    if (is_idle(*axis, stride, outcome, store)) idle.push_back(join(axis->keys, " and "));
    stride *= axis->values.size();
  }
  std::reverse(idle.begin(), idle.end());
  return idle;
}

std::vector<std::string> idle_everywhere(const SweepSpec& sweep, Fidelity fidelity, const SweepOutcome& outcome) {
  constexpr std::size_t kMostPoints = 500;  // each is read once more
  std::vector<std::string> common;
  if (outcome.points.size() > kMostPoints) return common;
  SpecCache specs;
  bool first = true;
  for (std::size_t i = 0; i < outcome.points.size() && (first || !common.empty()); ++i) {
    if (outcome.errors.count(outcome.hashes[i]) > 0) continue;
    ConfigTree scenario = point_scenario(sweep, outcome.points[i]);
    if (!sweep.simulate) scenario = without_request(scenario);
    std::vector<std::string> lines = idle_settings(scenario, read_scenario(scenario, fidelity, specs));
    if (std::exchange(first, false)) common = lines;
    std::erase_if(common, [&](const std::string& line) {
      return varies(sweep, line) || std::find(lines.begin(), lines.end(), line) == lines.end();
    });
  }
  return common;
}

}  // namespace roofcast
