#include "sim/plan/search/idle_in_run.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/number_text.h"
#include "base/text.h"
#include "sim/plan/disaggregation.h"
#include "sim/plan/idle_settings.h"
#include "sim/plan/metrics_list.h"
#include "sim/plan/search/condition.h"
#include "sim/plan/spec_cache.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

/// Names and remarks of a document, and the price of a GPU.
constexpr std::array<std::string_view, 13> kNoSettings{
    "name",         "version", "version_assumed", "released",  "beyond_known", "help",     "source",
    "architecture", "like",    "price",           "available", "announced",    "published"};

void add_leaves(const ConfigNode& node, const std::string& key, std::vector<std::string>& keys) {
  const bool maps = node.kind == ConfigNode::Kind::kList && !node.items.empty() && node.items.front() &&
                    node.items.front()->kind == ConfigNode::Kind::kMap;
  if (node.kind == ConfigNode::Kind::kMap) {
    for (const ConfigNode::Entry& entry : node.entries) {
      const bool setting = std::find(kNoSettings.begin(), kNoSettings.end(), entry.key) == kNoSettings.end();
      if (entry.value && setting) add_leaves(*entry.value, key + "." + entry.key, keys);
    }
  } else if (maps) {
    for (std::size_t i = 0; i < node.items.size(); ++i) add_leaves(*node.items[i], fmt::format("{}.{}", key, i), keys);
  } else if (node.kind != ConfigNode::Kind::kNull) {
    keys.push_back(key);
  }
}

/// The tree without `dotted.key` of its maps; null where that is no key of a map.
ConfigTree without_key(const ConfigTree& tree, std::string_view dotted_key) {
  if (!tree || tree->kind != ConfigNode::Kind::kMap) return nullptr;
  const std::size_t dot = dotted_key.find('.');
  auto copy = std::make_shared<ConfigNode>(*tree);
  const auto named = [&](const ConfigNode::Entry& entry) { return entry.key == dotted_key.substr(0, dot); };
  const auto found = std::find_if(copy->entries.begin(), copy->entries.end(), named);
  if (found == copy->entries.end()) return nullptr;
  if (dot == std::string_view::npos) {
    copy->entries.erase(found);
    return copy;
  }
  found->value = without_key(found->value, dotted_key.substr(dot + 1));
  return found->value ? copy : nullptr;
}

/// Whether both scenarios have the same engine or GPU.
bool same_spec(std::string_view kind, std::string_view key, const ConfigTree& one, const ConfigTree& other) {
  const auto text = [&](const ConfigTree& scenario) { return to_yaml(*resolve_named(kind, *scenario->find(key))); };
  return text(one) == text(other);
}

/// Whether the scenario names a model and changes some of its keys, and does not spell it out.
bool changes_a_model(const ConfigTree& scenario) {
  const ConfigTree* model = scenario->find("model");
  return model != nullptr && *model && (*model)->kind == ConfigNode::Kind::kMap && (*model)->find("name") != nullptr &&
         resolve_named("models", *model) != *model;
}

/// Whether the prefill workers have another engine without this setting.
bool changes_prefill_engine(const ConfigTree& scenario, const LeftOut& setting) {
  if (!setting.key.starts_with("disaggregation.prefill.engine.") || !setting.without) return false;
  const auto prefill = [](const ConfigTree& tree) {
    return prefill_scenario(tree, *(*tree->find("disaggregation"))->find("prefill"));
  };
  return !same_spec("engines", "engine", prefill(scenario), prefill(setting.without));
}

bool is_said(const std::string& key, const std::vector<std::string>& said) {
  return std::any_of(said.begin(), said.end(), [&](const std::string& line) {
    const std::string named = line.substr(0, line.find_first_of(" :"));
    return key == named || key.starts_with(named + ".");
  });
}

/// Twice and half a number, in its unit, and the other of true and false.
std::vector<ConfigTree> other_values(const ConfigTree& value) {
  if (value->kind != ConfigNode::Kind::kScalar || value->quoted) return {};
  if (value->scalar == "true") return {make_scalar("false", value->location)};
  if (value->scalar == "false") return {make_scalar("true", value->location)};
  const std::size_t end = std::min(value->scalar.find_first_not_of("0123456789."), value->scalar.size());
  double number = 0;
  if (parse_number(value->scalar.substr(0, end), number) != NumberFault::kNone) return {};
  const auto scaled = [&](double by) {
    return make_scalar(fmt::format("{}{}", number == 0 ? by : by * number, value->scalar.substr(end)), value->location);
  };
  return {scaled(2), scaled(0.5)};
}

}  // namespace

std::optional<LeftOut> left_out(const ConfigTree& scenario, std::string_view key,
                                const std::vector<std::string>& said) {
  const ConfigTree value = value_at(scenario, key);
  if (!value || value->kind == ConfigNode::Kind::kNull || is_said(std::string(key), said)) return std::nullopt;
  LeftOut setting{.key = std::string(key), .without = without_key(scenario, key), .changed = {}};
  for (const ConfigTree& other : other_values(value))
    setting.changed.push_back(with_value(scenario, key, other, setting.key));
  return setting;
}

std::vector<LeftOut> settings_left_out(const ConfigTree& scenario, const std::vector<std::string>& said) {
  std::vector<LeftOut> all;
  const auto add = [&](const char* part, const char* kind = nullptr) {
    ConfigTree written = scenario;
    for (const std::string& key : split(part, '.')) {
      const ConfigTree* next = written ? written->find(key) : nullptr;
      written = next != nullptr ? ConfigTree(*next) : nullptr;
    }
    if (!written || (kind != nullptr && written->kind != ConfigNode::Kind::kMap)) return;
    std::vector<std::string> keys;
    add_leaves(*written, part, keys);
    for (const std::string& key : keys) {
      auto setting = left_out(scenario, key, said);
      if (!setting) continue;
      // A word of the other parts may be the default.
      const bool repeats = kind != nullptr && setting->without && same_spec(kind, part, scenario, setting->without);
      const bool tells = kind != nullptr || !setting->changed.empty() || changes_prefill_engine(scenario, *setting);
      if (!repeats && tells) all.push_back(std::move(*setting));
    }
  };
  add("engine", "engines");
  add("gpu", "hardware");
  if (changes_a_model(scenario)) add("model", "models");
  for (const char* part : {"routing", "speculation", "adapters", "max_queue", "failures", "autoscaling",
                           "disaggregation", "workload.rate_limit", "workload.timeout", "workload.text_growth"})
    add(part);
  for (const auto& [key, usual] : {std::pair{"policy", "fcfs"}, {"router", "round_robin"}}) {
    const ConfigTree value = value_at(scenario, key);
    if (!value || value->scalar == usual) continue;
    if (auto setting = left_out(scenario, key, said)) all.push_back(std::move(*setting));
  }
  return all;
}

bool is_idle(const LeftOut& setting, const std::function<bool(const ConfigTree&)>& same_answer) {
  int alike = 0;
  const auto differs = [&](const ConfigTree& tree) {
    try {
      const bool same = same_answer(tree);
      alike += same ? 1 : 0;
      return !same;
    } catch (const std::runtime_error&) {  // refused
      return false;
    } catch (const InternalError&) {  // of a value that nobody gave
      return false;
    }
  };
  if (setting.without && differs(setting.without)) return false;
  return std::none_of(setting.changed.begin(), setting.changed.end(), differs) && alike > 0;
}

namespace {

/// Requests and steps of all repeated runs together: a tenth of a second or so. Reading and pricing a scenario takes
/// as long as some hundred of them.
constexpr std::int64_t kMostEvents = 100'000, kEventsOfReading = 500;

}  // namespace

std::vector<std::string> idle_in_run(const ConfigTree& scenario, const Scenario& read, Fidelity fidelity,
                                     const ServingMetrics& metrics) {
  const std::int64_t events = metrics.iterations + metrics.completed + metrics.failed;
  if (events > kMostEvents) return {};
  const std::vector<LeftOut> settings = settings_left_out(scenario, idle_settings(scenario, read));
  std::int64_t runs = 0;
  for (const LeftOut& setting : settings)
    runs += (setting.without ? 1 : 0) + static_cast<std::int64_t>(setting.changed.size());
  if ((events + kEventsOfReading) * runs > kMostEvents) return {};
  std::vector<std::string> lines;
  SpecCache specs;
  const std::string answer = to_text(metrics_of(metrics, read));
  const auto same_answer = [&](const ConfigTree& tree) {
    const Scenario other = read_scenario(tree, fidelity, specs);
    return !other.deployment->memory.infeasible &&
           to_text(metrics_of(simulate(other.deployment, *other.workload, other.serving), other)) == answer;
  };
  for (const LeftOut& setting : settings) {
    if (is_idle(setting, same_answer)) lines.push_back(fmt::format("{} changes nothing in this run", setting.key));
  }
  return lines;
}

}  // namespace roofcast
