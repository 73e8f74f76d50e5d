#include "sim/plan/search/sweep.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/number_text.h"
#include "base/text.h"
#include "sim/plan/prices.h"
#include "sim/plan/search/build_id.h"
#include "sim/plan/search/condition.h"

namespace roofcast {
namespace {

constexpr double kMaxRange = 1e6;
constexpr std::size_t kMostKeys = 1000;         // of a grid or a zip, and conditions: each point is written key by key
constexpr std::size_t kMostValues = 2'000'000;  // of all keys together

/// Number of values in {from, to, times | step}. Throws for none, and for more than fit in memory.
std::int64_t range_size(const SourceLocation& location, const std::string& key, double from, double to, double times,
                        double step) {
  if ((times > 1) == (step > 0))
    throw ConfigError(location, fmt::format("'{}' needs either 'times', more than 1, or 'step', more than 0", key));
  if (times > 1 && from <= 0)
    throw ConfigError(location, fmt::format("'{}': 'from' must be more than 0 to be multiplied", key));
  if (from > to)
    throw ConfigError(location,
                      fmt::format("'{}' is a range without values: it goes up, from {} to {}", key, from, to));
  const double steps = times > 1 ? std::log(to / from) / std::log(times) : (to - from) / step;
  if (!(steps < kMaxRange))
    throw ConfigError(location, fmt::format("'{}' is a range of more than {:.0f} values", key, kMaxRange));
  return static_cast<std::int64_t>(steps) + 2;  // values above `to` are dropped when generated
}

/// "16 /s" as "16" and "/s"; a plain number has an empty unit.
std::pair<std::string, std::string> number_and_unit(const std::string& text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789.+-eE"), text.size());
  return {text.substr(0, end), std::string(trim(std::string_view(text).substr(end)))};
}

/// The unit of a bound of a range.
std::string unit_of(const ConfigReader& in, std::string_view key) {
  const ConfigTree* value = in.whole()->find(key);
  const bool plain = value != nullptr && *value && (*value)->kind == ConfigNode::Kind::kScalar && !(*value)->quoted;
  const auto [number, unit] = plain ? number_and_unit((*value)->scalar) : std::pair<std::string, std::string>();
  return number.empty() ? "" : unit;
}

/// A bound of a range, in the common unit.
double bound_of(ConfigReader& in, std::string_view key, const std::string& unit) {
  if (unit.empty()) return in.number(key);
  const std::string text = in.text(key);
  const auto [number, own] = number_and_unit(text);
  double value = 0;
  if (own != unit || parse_number(number, value) != NumberFault::kNone)
    in.fail(key,
            fmt::format("'{}' must be a number with the unit of 'from', such as '8 {}', got '{}'", key, unit, text));
  return value;
}

/// {from, to, times | step} as numbers, each with the unit that the bounds have.
std::vector<ConfigTree> range_values(const ConfigTree& tree, const std::string& key) {
  ConfigReader in(tree, "a range");
  const std::string unit = unit_of(in, "from"), ending = unit.empty() ? "" : " " + unit;
  const double from = bound_of(in, "from", unit), to = bound_of(in, "to", unit);
  const double times = in.number("times", 0.0, kAtLeastZero);
  const double step =
      in.has("step") && !unit.empty() ? bound_of(in, "step", unit) : in.number("step", 0.0, kAtLeastZero);
  in.finish();
  const std::int64_t most = range_size(tree->location, key, from, to, times, step);
  std::vector<ConfigTree> values;
  for (std::int64_t i = 0; i < most; ++i) {
    const auto n = static_cast<double>(i);
    const double value = times > 1 ? from * std::pow(times, n) : from + step * n;
    if (i > 0 && value > to + std::abs(to) * 1e-12) break;
    const double whole = std::round(value);
    values.push_back(make_scalar(std::abs(value - whole) < 1e-9 * std::max(1.0, std::abs(whole))
                                     ? fmt::format("{:.0f}{}", whole, ending)
                                     : fmt::format("{}{}", value, ending),
                                 tree->location));
  }
  return values;
}

/// Of a grid or a zip; `total`: values of its keys so far.
void check_size(const ConfigNode& map, std::size_t total) {
  if (map.entries.size() > kMostKeys)
    throw ConfigError(map.location, fmt::format("varies {} keys; at most {}", map.entries.size(), kMostKeys));
  if (total > kMostValues)
    throw ConfigError(map.location, fmt::format("the lists and ranges hold more than {} values together", kMostValues));
}

std::vector<ConfigTree> values_of(const ConfigNode::Entry& entry) {
  const ConfigTree& tree = entry.value;
  if (tree && tree->kind == ConfigNode::Kind::kMap && tree->find("from") != nullptr)
    return range_values(tree, entry.key);
  if (!tree || tree->kind != ConfigNode::Kind::kList) {
    throw ConfigError(tree ? tree->location : entry.key_location,
                      fmt::format("'{}' must be a list of values, or a range {{from, to, times}}", entry.key));
  }
  if (tree->items.empty())
    throw ConfigError(tree->location, fmt::format("'{}' has no values: the grid is empty", entry.key));
  return tree->items;
}

void add_grid(SweepSpec& sweep, ConfigReader in) {
  const ConfigTree map = in.whole();
  std::size_t total = 0;
  for (const ConfigNode::Entry& entry : map->entries) {
    SweepAxis axis{.keys = {entry.key}, .values = {}};
    for (ConfigTree& value : values_of(entry)) axis.values.push_back({std::move(value)});
    check_size(*map, total += axis.values.size());
    sweep.axes.push_back(std::move(axis));
  }
}

void add_zip(SweepSpec& sweep, ConfigReader in) {
  const ConfigTree map = in.whole();
  SweepAxis axis;
  std::size_t total = 0;
  for (const ConfigNode::Entry& entry : map->entries) {
    std::vector<ConfigTree> values = values_of(entry);
    check_size(*map, total += values.size());
    if (axis.keys.empty()) axis.values.resize(values.size());
    if (values.size() != axis.values.size()) {
      throw ConfigError(entry.value->location,
                        fmt::format("'{}' has {} values, '{}' has {}: zipped lists must have the same length",
                                    entry.key, values.size(), axis.keys.front(), axis.values.size()));
    }
    axis.keys.push_back(entry.key);
    for (std::size_t i = 0; i < values.size(); ++i) axis.values[i].push_back(std::move(values[i]));
  }
  if (!axis.keys.empty()) sweep.axes.push_back(std::move(axis));
}

/// A scenario by name, by file, or inline.
ConfigTree scenario_of(ConfigReader& in) {
  const ConfigTree tree = in.tree("scenario");
  if (!tree) in.fail("scenario", "'scenario' is missing: a file, a name, or a mapping of model, gpu, ...");
  return tree->kind == ConfigNode::Kind::kScalar ? load_named("scenarios", tree->scalar, tree->location) : tree;
}

void check_keys(const SweepSpec& sweep, const SourceLocation& location) {
  std::vector<std::string> keys = point_keys(sweep);
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice != keys.end()) throw ConfigError(location, fmt::format("'{}' varies twice", *twice));
  if (keys.empty()) throw ConfigError(location, "nothing varies: give 'grid' or 'zip'");
}

/// The position of a point on each axis.
std::vector<std::size_t> positions(const SweepSpec& sweep, std::uint64_t index) {
  std::vector<std::size_t> at(sweep.axes.size());
  for (std::size_t a = sweep.axes.size(); a-- > 0;) {
    at[a] = index % sweep.axes[a].values.size();
    index /= sweep.axes[a].values.size();
  }
  return at;
}

std::string one_line(const ConfigTree& tree) {
  if (!tree || tree->kind == ConfigNode::Kind::kNull) return "null";
  if (tree->kind == ConfigNode::Kind::kScalar) return tree->scalar;
  std::string out;
  for (const ConfigTree& item : tree->items) out += (out.empty() ? "" : ", ") + one_line(item);
  for (const ConfigNode::Entry& entry : tree->entries)
    out += (out.empty() ? "" : ", ") + entry.key + ": " + one_line(entry.value);
  return tree->kind == ConfigNode::Kind::kList ? "[" + out + "]" : "{" + out + "}";
}

}  // namespace

double SweepSpec::grid_points() const {
  double points = 1;
  for (const SweepAxis& axis : axes) points *= static_cast<double>(axis.values.size());
  return points;
}

SweepSpec parse_sweep(const ConfigTree& tree) {
  static constexpr std::array<std::string_view, 2> kRuns{"estimate", "simulate"};
  ConfigReader in(tree, "a sweep");
  SweepSpec sweep;
  sweep.name = in.text("name", "");
  in.ignore("help");
  in.ignore("source");
  sweep.scenario = scenario_of(in);
  if (sweep.scenario->kind != ConfigNode::Kind::kMap) in.fail("scenario", "must be a file, a name, or a mapping");
  sweep.simulate = in.choice("run", kRuns, 0) == 1;
  if (auto grid = in.optional_child("grid")) add_grid(sweep, std::move(*grid));
  if (auto zip = in.optional_child("zip")) add_zip(sweep, std::move(*zip));
  for (const ConfigTree& condition : in.list("where")) {
    if (condition->kind != ConfigNode::Kind::kScalar)
      throw ConfigError(condition->location, "a condition is a text such as 'parallelism.tp <= 4'");
    sweep.where.emplace_back(condition->scalar, condition->location);
    if (sweep.where.size() > kMostKeys)
      throw ConfigError(condition->location, fmt::format("more than {} conditions", kMostKeys));
  }
  in.finish();
  check_keys(sweep, tree->location);
  return sweep;
}

ConfigTree with_fixed(const SweepSpec& sweep, const ConfigTree& scenario, const std::string& key,
                      const ConfigTree& value, const std::string& origin) {
  for (const std::string& varied : point_keys(sweep)) {
    if (varied == key || varied.starts_with(key + ".") || key.starts_with(varied + "."))
      throw ConfigError(fmt::format("{}: the sweep varies '{}' itself; change its grid", origin, varied));
  }
  return with_value(scenario, key, value, origin);
}

ConfigTree point_scenario(const SweepSpec& sweep, std::uint64_t index) {
  ConfigTree tree = sweep.scenario;
  const std::vector<std::size_t> at = positions(sweep, index);
  for (std::size_t a = 0; a < at.size(); ++a) {
    const SweepAxis& axis = sweep.axes[a];
    for (std::size_t k = 0; k < axis.keys.size(); ++k) {
      const ConfigTree& value = axis.values[at[a]][k];
      tree = with_value(tree, axis.keys[k], value, value->location);
    }
  }
  return tree;
}

std::vector<std::string> point_keys(const SweepSpec& sweep) {
  std::vector<std::string> keys;
  for (const SweepAxis& axis : sweep.axes) keys.insert(keys.end(), axis.keys.begin(), axis.keys.end());
  return keys;
}

std::vector<std::string> point_values(const SweepSpec& sweep, std::uint64_t index) {
  std::vector<std::string> out;
  const std::vector<std::size_t> at = positions(sweep, index);
  for (std::size_t a = 0; a < at.size(); ++a) {
    for (const ConfigTree& value : sweep.axes[a].values[at[a]]) out.push_back(one_line(value));
  }
  return out;
}

std::vector<std::uint64_t> kept_points(const SweepSpec& sweep) {
  std::vector<std::uint64_t> kept;
  const auto points = static_cast<std::uint64_t>(sweep.grid_points());
  for (std::uint64_t i = 0; i < points; ++i) {
    bool keep = true;
    if (!sweep.where.empty()) {
      const ConfigTree scenario = point_scenario(sweep, i);
      for (const auto& [condition, location] : sweep.where) keep = keep && holds(condition, scenario, location);
    }
    if (keep) kept.push_back(i);
  }
  if (kept.empty())
    throw ConfigError(sweep.where.front().second, fmt::format("'where' leaves none of the {} points", points));
  return kept;
}

std::string point_hash(const ConfigTree& scenario, bool simulate, Fidelity fidelity, SpecCache& specs) {
  const std::string text =
      fmt::format("roofcast {} {} {} {}\n{:016x}\n{:016x}\n{}", ROOFCAST_VERSION, kBuildId,
                  simulate ? "simulate" : "estimate", fidelity == Fidelity::kIdeal ? "ideal" : "calibrated",
                  specs.fingerprint(scenario), prices_fingerprint(), to_yaml(*scenario));
  return fmt::format("{:016x}{:016x}", hash_text(text), hash_text(text, 0x9e3779b97f4a7c15ULL));
}

}  // namespace roofcast
