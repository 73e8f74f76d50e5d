// Reads a plan file of several services.
#include "sim/plan/search/services.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/text.h"
#include "sim/plan/search/condition.h"

namespace roofcast {
namespace {

constexpr const char* kFile = "plan";
constexpr std::size_t kMostServices = 16;
/// Keys of the search that apply to all services together.
constexpr std::array kOfAll{"max_gpus", "max_cost",         "max_power",
                            "goal",     "carbon_intensity", "power_usage_effectiveness"};

const ConfigTree* child(const ConfigTree& tree, std::string_view key) {
  const ConfigTree* found = tree && tree->kind == ConfigNode::Kind::kMap ? tree->find(key) : nullptr;
  return found != nullptr && *found && (*found)->kind != ConfigNode::Kind::kNull ? found : nullptr;
}

/// The name of the shipped GPU, or the name as written.
std::string gpu_name(const ConfigTree& tree) {
  const ConfigTree* name = tree->kind == ConfigNode::Kind::kMap ? tree->find("name") : &tree;
  const std::string text = name != nullptr && *name ? (*name)->scalar : "";
  const std::string shipped = shipped_name("hardware", text);
  return shipped.empty() ? text : shipped;
}

/// The common GPUs that a service may use.
ConfigTree gpus_of_service(const ConfigTree& common, const ConfigTree& own) {
  std::vector<ConfigTree> chosen;
  for (const ConfigTree& wanted : ConfigReader(make_map({{"gpus", own->location, own}}, own->location)).list("gpus")) {
    if (wanted->kind != ConfigNode::Kind::kScalar)
      throw ConfigError(wanted->location,
                        "a service's 'gpus' are names; what they cost and how many there are stands in "
                        "the common 'search'");
    const auto at = std::find_if(common->items.begin(), common->items.end(),
                                 [&](const ConfigTree& gpu) { return gpu_name(gpu) == gpu_name(wanted); });
    if (at == common->items.end()) {
      std::vector<std::string> valid;
      for (const ConfigTree& gpu : common->items) valid.push_back(gpu_name(gpu));
      throw ConfigError(wanted->location, unknown_name("gpu of the common 'search'", wanted->scalar, valid));
    }
    chosen.push_back(*at);
  }
  return make_list(std::move(chosen), own->location);
}

[[noreturn]] void in_both_places(const ConfigNode::Entry& entry, const std::string& name) {
  throw ConfigError(entry.key_location,
                    fmt::format("'{}' is given for all services and for '{}'; give it once", entry.key, name));
}

ConfigTree search_of(const ConfigTree& common, const ConfigTree* own, const std::string& name) {
  if (own == nullptr) return common;
  ConfigTree out = common;
  if ((*own)->kind != ConfigNode::Kind::kMap) throw ConfigError((*own)->location, "'search' must be a map");
  for (const ConfigNode::Entry& entry : (*own)->entries) {
    if (std::find(kOfAll.begin(), kOfAll.end(), entry.key) != kOfAll.end())
      throw ConfigError(
          entry.key_location,
          fmt::format("'{}' applies to all services together: write it in the common 'search'", entry.key));
    if (entry.key == "gpus") {
      out = with_value(out, "gpus", gpus_of_service(*common->find("gpus"), entry.value), kFile);
      continue;
    }
    if (child(common, entry.key) != nullptr) in_both_places(entry, name);
    out = with_value(out, entry.key, entry.value, kFile);
  }
  return out;
}

/// The common part, overridden by the service's own keys.
ConfigTree plan_of(const ConfigTree& all, const ConfigTree& service, const std::string& name) {
  auto plan = std::make_shared<ConfigNode>(*all);
  plan->location = service->location;
  std::erase_if(plan->entries, [](const auto& entry) { return entry.key == "services" || entry.key == "search"; });
  for (const ConfigNode::Entry& entry : service->entries) {
    if (entry.key == "name" || entry.key == "search") continue;
    if (child(plan, entry.key) != nullptr) in_both_places(entry, name);
    plan->entries.push_back(entry);
  }
  ConfigTree out = plan;
  return with_value(out, "search", search_of(*all->find("search"), child(service, "search"), name), kFile);
}

void check_name(const std::string& name, const SourceLocation& location, const std::vector<Service>& before) {
  constexpr std::size_t kLongest = 40;
  if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos)
    throw ConfigError(location,
                      fmt::format("a service's 'name' has only lower-case letters, digits and '-'; got '{}'", name));
  if (name.empty() || name.size() > kLongest)
    throw ConfigError(
        location, fmt::format("a service's 'name' has 1 to {} characters; '{}' has {}", kLongest, name, name.size()));
  if (name.front() == '-' || name.back() == '-')
    throw ConfigError(location,
                      fmt::format("a service's 'name' must start and end with a letter or digit; got '{}'", name));
  if (std::any_of(before.begin(), before.end(), [&](const Service& s) { return s.name == name; }))
    throw ConfigError(location, fmt::format("two services have the name '{}'", name));
}

/// The common search, read once.
void read_limits(ServicesSpec& spec) {
  for (const Service& service : spec.services) {
    const PlanSpec plan = parse_plan(service.plan);
    spec.goal = plan.goal;
    spec.limits.max_gpus = plan.max_gpus;
    if (plan.max_cost.value > 0) spec.limits.max_usd_per_hour = plan.max_cost.value;
    if (plan.max_power.value > 0) spec.limits.max_watts = plan.max_power.value;
    for (const auto& kind : plan.available) {
      auto& known = spec.limits.available;
      if (std::find(known.begin(), known.end(), kind) == known.end()) known.push_back(kind);
    }
  }
}

/// Throws ConfigError for features that a fleet of several services does not support.
void check_together(const Service& service) {
  const ConfigTree goal = value_at(service.plan, "search.goal"), owned = value_at(service.plan, "search.owned");
  if (goal && goal->scalar == "throughput")
    throw ConfigError(goal->location, "services share a fleet for the loads they have; 'goal: throughput' offers none");
  if (owned && owned->kind != ConfigNode::Kind::kNull)
    throw ConfigError(owned->location,
                      "GPUs at hand of several services stand in 'gpus', with how many there are and what "
                      "they cost while they run: {name: a100-sxm, available: 8, price: 0.4 USD/h}");
  if (diurnal_plan(service.plan))
    throw ConfigError(service.plan->location,
                      fmt::format("'{}': services share a fleet of constant size; a load with a "
                                  "'profile' is planned by itself",
                                  service.name));
}

}  // namespace

bool has_services(const ConfigTree& plan) {
  return plan->kind == ConfigNode::Kind::kMap && plan->find("services") != nullptr;
}

ServicesSpec parse_services(const ConfigTree& plan) {
  ServicesSpec spec;
  const ConfigTree& list = *plan->find("services");
  if (!list || list->kind != ConfigNode::Kind::kList || list->items.empty())
    throw ConfigError(list ? list->location : plan->location,
                      "'services' must list at least one: [{name: chat, model: ..., workload: ...}]");
  if (list->items.size() > kMostServices)
    throw ConfigError(list->location,
                      fmt::format("{} services are too many, {} is the most", list->items.size(), kMostServices));
  const ConfigTree* search = child(plan, "search");
  if (search == nullptr || child(*search, "gpus") == nullptr || (*search->get()->find("gpus"))->items.empty())
    throw ConfigError(plan->location, "a plan of services needs a common 'search: {gpus: [...], max_gpus: N, ...}'");
  for (const ConfigTree& item : list->items) {
    ConfigReader in(item, "a service");
    const std::string name = in.text("name");
    check_name(name, in.location_of("name"), spec.services);
    spec.services.push_back({name, plan_of(plan, item, name)});
  }
  if (spec.services.size() > 1) {
    for (const Service& service : spec.services) check_together(service);
  }
  read_limits(spec);
  return spec;
}

}  // namespace roofcast
