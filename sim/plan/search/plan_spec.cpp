#include "sim/plan/search/plan_spec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/text.h"
#include "sim/model/recipes.h"
#include "sim/plan/search/condition.h"
#include "sim/plan/search/load_test.h"
#include "sim/plan/support.h"

namespace roofcast {
namespace {

constexpr std::array<std::string_view, 3> kGoals{"cost", "gpus", "throughput"};
constexpr double kMaxCandidates = 1e5;

struct SpaceKey {
  const char* name;
  const char* key;
};
/// In the order in which they are applied to the scenario: an engine before its limits, a recipe before single formats.
constexpr std::array kSpaceKeys{SpaceKey{"engines", "engine"},
                                SpaceKey{"expert_overlap", "engine.expert_overlap"},
                                SpaceKey{"precision", "precision"},
                                SpaceKey{"weights", "precision.weights"},
                                SpaceKey{"kv_cache", "precision.kv_cache"},
                                SpaceKey{"tp", "parallelism.tp"},
                                SpaceKey{"pp", "parallelism.pp"},
                                SpaceKey{"dcp", "parallelism.dcp"},
                                SpaceKey{"ep", "parallelism.ep"},
                                SpaceKey{"attention_dp", "parallelism.attention_dp"},
                                SpaceKey{"speculation", "speculation"},
                                SpaceKey{"max_num_seqs", "engine.max_num_seqs"},
                                SpaceKey{"max_num_batched_tokens", "engine.max_num_batched_tokens"}};

/// Removes and returns `available`, a key of the plan, from a GPU of the list.
std::optional<int> take_available(ConfigTree& gpu) {
  if (gpu->kind != ConfigNode::Kind::kMap || gpu->find("available") == nullptr) return std::nullopt;
  const auto available = static_cast<int>(ConfigReader(gpu, "a GPU").integer("available", {1, 1e6}));
  auto rest = std::make_shared<ConfigNode>(*gpu);
  std::erase_if(rest->entries, [](const ConfigNode::Entry& entry) { return entry.key == "available"; });
  gpu = rest;
  return available;
}

void read_modes(PlanSpec& plan, ConfigReader& in) {
  if (!in.has("modes")) return;
  const std::vector<std::string> modes = in.texts("modes");
  if (modes.empty()) in.fail("modes", "'modes' lists no value: leave it out, or give one");
  plan.aggregated = plan.disaggregated = false;
  for (const std::string& mode : modes) {
    if (mode != "aggregated" && mode != "disaggregated")
      in.fail("modes", fmt::format("'{}' must be 'aggregated' or 'disaggregated'", mode));
    (mode == "aggregated" ? plan.aggregated : plan.disaggregated) = true;
  }
}

/// `gpus`: the GPUs of the search.
RoleSpace read_role(std::optional<ConfigReader> in, const std::vector<std::string>& gpus) {
  RoleSpace role;
  if (!in) return role;
  for (const std::string& gpu : in->texts("gpus")) {
    const std::string shipped = shipped_name("hardware", gpu), &name = shipped.empty() ? gpu : shipped;
    if (std::find(gpus.begin(), gpus.end(), name) == gpus.end())
      in->fail("gpus", fmt::format("'{}' is not among the search's 'gpus': {}", gpu, join(gpus, ", ")));
    role.gpus.push_back(name);
  }
  for (const auto& [key, values] : {std::pair{"tp", &role.tp},
                                    {"pp", &role.pp},
                                    {"ep", &role.ep},
                                    {"attention_dp", &role.attention_dp},
                                    {"max_num_seqs", &role.max_num_seqs},
                                    {"max_num_batched_tokens", &role.max_num_batched_tokens},
                                    {"workers", &role.workers}}) {
    for (double value : in->numbers(key, {1, 1e6})) {
      if (value != std::floor(value)) in->fail(key, fmt::format("'{}' must be whole numbers, got {}", key, value));
      values->push_back(static_cast<int>(value));
    }
  }
  in->finish();
  return role;
}

void read_disaggregation(PlanSpec& plan, const std::vector<std::string>& gpus, ConfigReader& in) {
  for (const char* key : {"prefill", "decode", "transfer"}) {
    if (in.has(key) && !plan.disaggregated) in.fail(key, fmt::format("'{}' belongs to 'modes: [disaggregated]'", key));
  }
  plan.prefill = read_role(in.optional_child("prefill"), gpus);
  plan.decode = read_role(in.optional_child("decode"), gpus);
  if (auto transfer = in.optional_child("transfer")) {
    plan.transfer_bandwidth = transfer->bandwidth("bandwidth", BytesPerSecond(0));
    if (transfer->has("latency")) plan.transfer_latency = transfer->time("latency", Seconds(0));
    transfer->finish();
  }
}

/// Checks a list in the file: neither empty nor with duplicates.
void check_values(const ConfigReader& in, const char* name, const std::vector<ConfigTree>& values) {
  if (values.empty()) in.fail(name, fmt::format("'{}' lists no value: leave it out, or give one", name));
  std::set<std::string> seen;
  for (const ConfigTree& value : values) {
    if (!seen.insert(value ? to_yaml(*value) : "").second)
      throw ConfigError(value->location, fmt::format("'{}' has this value twice", name));
  }
}

void add_axis(SweepSpec& space, const char* key, std::vector<ConfigTree> values) {
  SweepAxis axis{.keys = {key}, .values = {}};
  for (ConfigTree& value : values) axis.values.push_back({std::move(value)});
  space.axes.push_back(std::move(axis));
}

/// Expands a method with a list of k to one value each; `none` is no speculation.
std::vector<ConfigTree> speculations(const std::vector<ConfigTree>& values) {
  std::vector<ConfigTree> out;
  for (const ConfigTree& value : values) {
    const bool map = value->kind == ConfigNode::Kind::kMap;
    const ConfigTree* drafts = map ? value->find("num_speculative_tokens") : nullptr;
    if (value->kind == ConfigNode::Kind::kScalar && value->scalar == "none") {
      auto none = std::make_shared<ConfigNode>(*value);
      none->kind = ConfigNode::Kind::kNull;
      out.push_back(std::move(none));
    } else if (drafts != nullptr && *drafts && (*drafts)->kind == ConfigNode::Kind::kList) {
      for (const ConfigTree& k : (*drafts)->items)
        out.push_back(with_value(value, "num_speculative_tokens", k, "plan"));
    } else if (map) {
      out.push_back(value);
    } else {
      throw ConfigError(value->location,
                        "a speculation is 'none' or a map such as {method: eagle3, acceptance: 0.7, "
                        "num_speculative_tokens: [1, 3, 5]}");
    }
  }
  return out;
}

/// Engines that split models only by layers search pp unless tp or pp is given.
bool splits_by_layers(const ConfigTree& scenario, const ConfigReader& in) {
  if (in.has("engines") || in.has("tp")) return false;
  const ConfigTree* engine = scenario->find("engine");
  const ConfigTree* name = engine != nullptr && *engine ? (*engine)->find("name") : nullptr;
  if (name == nullptr) name = engine;
  if (name == nullptr || !*name) return false;
  const std::string& text = (*name)->scalar;
  return engine_traits(text.substr(0, text.find('@'))).splits_by_layers;
}

/// Returns the GPUs' names.
std::vector<std::string> read_space(PlanSpec& plan, ConfigReader& in) {
  std::vector<std::string> names;
  std::vector<ConfigTree> gpus = in.list("gpus");
  if (gpus.empty()) in.fail("gpus", "'gpus' must list what may be bought, such as [h100-sxm, h200-sxm]");
  check_values(in, "gpus", gpus);
  const bool announced = in.boolean("announced", false);
  for (ConfigTree& gpu : gpus) {
    const std::optional<int> available = take_available(gpu);
    const bool map = gpu->kind == ConfigNode::Kind::kMap;
    if (map && !gpu->find("name") && !gpu->find("like") && !gpu->find("architecture"))
      throw ConfigError(gpu->location, "a GPU of the list needs its 'name', as in {name: h100-sxm, available: 8}");
    const GpuSpec spec = parse_gpu_spec(ConfigReader(resolve_named("hardware", gpu), "a GPU"));
    if (spec.announced && !announced)
      throw ConfigError(gpu->location, fmt::format("'{}' is announced but not sold yet: its figures are planned; "
                                                   "'announced: true' in the search takes them as they are",
                                                   spec.name));
    if (std::find(names.begin(), names.end(), spec.name) != names.end())
      throw ConfigError(
          gpu->location,
          fmt::format("'gpus' has {} twice{}", spec.name,
                      shipped_name("hardware", spec.name).empty() ? "; give each a 'name' of its own" : ""));
    names.push_back(spec.name);
    if (available) plan.available.emplace_back(spec.name, *available);
  }
  const bool by_layers = splits_by_layers(plan.space.scenario, in);
  add_axis(plan.space, "gpu", std::move(gpus));
  for (const SpaceKey& k : kSpaceKeys) {
    std::vector<ConfigTree> values;
    if (in.has(k.name)) {
      values = in.list(k.name);
      check_values(in, k.name, values);
      if (std::string_view(k.name) == "speculation") values = speculations(values);
    } else if (std::string_view(k.name) == (by_layers ? "pp" : "tp")) {
      for (int gpus_each = 1; gpus_each <= std::min(plan.max_gpus, 8); gpus_each *= 2)
        values.push_back(make_scalar(std::to_string(gpus_each), in.location()));
    }
    if (!values.empty()) add_axis(plan.space, k.key, std::move(values));
  }
  return names;
}

/// Reads required formats.
void read_only(PlanSpec& plan, std::optional<ConfigReader> in) {
  if (!in) return;
  for (const auto& [key, set, format] : {std::tuple{"weights", &plan.only_weights, &plan.only.weights},
                                         std::tuple{"activations", &plan.only_activations, &plan.only.activations},
                                         std::tuple{"kv_cache", &plan.only_kv_cache, &plan.only.kv_cache}}) {
    *set = in->has(key);
    if (*set) *format = parse_dtype(in->text(key), in->location_of(key));
  }
  in->finish();
}

std::optional<GrowthSpec> read_growth(const PlanSpec& plan, ConfigReader& in) {
  std::optional<ConfigReader> growth = in.optional_child("growth");
  if (!growth) return std::nullopt;
  if (plan.goal == PlanGoal::kThroughput)
    in.fail("growth", "'growth' needs an offered load; 'goal: throughput' seeks the highest load");
  GrowthSpec out;
  out.per_month = growth->number("per_month", Range{0.0001, 10.0});
  out.months = static_cast<int>(growth->integer("months", 24, {1, 120}));
  out.lead_months = static_cast<int>(growth->integer("lead_months", 0, {0, 60}));
  growth->finish();
  return out;
}

std::optional<ZoneSpec> read_zones(const PlanSpec& plan, ConfigReader& in) {
  std::optional<ConfigReader> zones = in.optional_child("zones");
  if (!zones) return std::nullopt;
  if (plan.availability <= 0)
    in.fail("zones", "'zones' needs 'availability': the share of time in which the load must be served");
  ZoneSpec out;
  out.count = static_cast<int>(zones->integer("count", Range{1, 100}));
  out.mtbf = zones->time("mtbf");
  out.repair = zones->time("repair");
  if (out.mtbf <= Seconds(0)) zones->fail("mtbf", "'mtbf' must be more than 0");
  if (out.repair < Seconds(0)) zones->fail("repair", "'repair' must be at least 0");
  zones->finish();
  return out;
}

/// The scenario without `search`, with an engine to which limits can be applied.
ConfigTree scenario_of(const ConfigTree& tree) {
  auto scenario = std::make_shared<ConfigNode>(*tree);
  std::erase_if(scenario->entries, [](const ConfigNode::Entry& entry) { return entry.key == "search"; });
  ConfigTree out = scenario;
  const ConfigTree* workload = out->find("workload");
  if (workload != nullptr && *workload &&
      (*workload)->kind == ConfigNode::Kind::kMap) {  // the search sets the number of requests
    const ConfigTree whole = resolve_named("workloads", *workload), process = value_at(whole, "arrivals.process");
    const bool ends = whole->find("clients") != nullptr || whole->find("requests") != nullptr ||
                      whole->find("duration") != nullptr || (process && process->scalar == "trace");
    if (!ends) out = with_value(out, "workload.requests", make_scalar("1000", whole->location), "plan");
  }
  if (out->find("engine") == nullptr) out = with_value(out, "engine", make_scalar("vllm", tree->location), "plan");
  return out;
}

bool all_at_once(const ConfigTree& tree) {
  const ConfigTree* workload = tree->find("workload");
  if (workload == nullptr) return false;
  const ConfigTree process = value_at(resolve_named("workloads", *workload), "arrivals.process");
  return process && process->scalar == "all_at_once";
}

/// The name in `search` of a scenario key that the search varies; empty: none.
std::string axis_name(const std::string& key) {
  if (key == "gpu") return "gpus";
  for (const SpaceKey& k : kSpaceKeys) {
    if (key == k.key) return k.name;
  }
  return "";
}

bool is_recipe(const std::string& name) {
  const auto all = recipes();
  return std::any_of(all.begin(), all.end(), [&](const Recipe& recipe) { return recipe.name == name; });
}

/// The plan with only those `precision` and `weights` that name the recipe, because a recipe sets more than the one
/// format that `only` can require.
ConfigTree with_recipe_alone(const ConfigTree& plan, const ConfigTree& recipe, const std::string& origin) {
  const std::string name = lower(trim(recipe->scalar));
  for (const char* axis : {"precision", "weights"}) {
    const ConfigTree listed = value_at(plan, std::string("search.") + axis);
    if (!listed) continue;
    std::vector<ConfigTree> kept = listed->kind == ConfigNode::Kind::kList ? listed->items : std::vector{listed};
    std::erase_if(kept, [&](const ConfigTree& value) {
      const ConfigTree weights = value && value->kind == ConfigNode::Kind::kMap ? value_at(value, "weights") : value;
      return !weights || weights->kind != ConfigNode::Kind::kScalar || lower(trim(weights->scalar)) != name;
    });
    if (kept.empty())
      throw ConfigError(fmt::format("{}: the search's '{}' does not list '{}'; --set search.{}=[{}] plans with it",
                                    origin, axis, name, axis, name));
    return with_value(plan, std::string("search.") + axis, make_list(std::move(kept), listed->location), origin);
  }
  return with_value(plan, "precision.weights", recipe, origin);
}

}  // namespace

ConfigTree with_constraint(const ConfigTree& plan, const std::string& key, const ConfigTree& value,
                           const std::string& origin) {
  const ConfigTree* search = plan->kind == ConfigNode::Kind::kMap ? plan->find("search") : nullptr;
  if (search == nullptr || !*search) return with_value(plan, key, value, origin);
  if (key == "parallelism.replicas" || key == "parallelism.dp")
    throw ConfigError(
        fmt::format("{}: a plan finds the number of replicas; --set search.max_gpus=N limits it", origin));
  const auto varied = [&](const char* name) { return (*search)->find(name) != nullptr; };
  const bool formats = varied("precision") || varied("weights") || varied("kv_cache");
  if (key == "precision.weights" && formats && value->kind == ConfigNode::Kind::kScalar &&
      is_recipe(lower(trim(value->scalar))))
    return with_recipe_alone(plan, value, origin);
  for (const char* format : {"weights", "activations", "kv_cache"}) {
    if (key == std::string("precision.") + format && formats && value->kind == ConfigNode::Kind::kScalar)
      return with_value(plan, std::string("search.only.") + format, value, origin);
  }
  const std::string name = axis_name(key);
  const bool always = name == "gpus" || name == "tp";  // searched whether the plan lists them or not
  if (!name.empty() && (always || varied(name.c_str())))
    return with_value(plan, "search." + name, make_list({value}, value->location), origin);
  for (const SpaceKey& k : kSpaceKeys) {
    const bool within = std::string(k.key).starts_with(key + ".");
    if (within && varied(k.name) && key != "engine")
      throw ConfigError(
          fmt::format("{}: the search varies '{}'; --set search.{}=[...] says over what", origin, k.key, k.name));
  }
  return with_value(plan, key, value, origin);
}

std::string_view name_of(PlanGoal goal) { return kGoals[static_cast<std::size_t>(goal)]; }

PlanSpec parse_plan(const ConfigTree& tree) {
  PlanSpec plan;
  const ConfigTree* search = tree->kind == ConfigNode::Kind::kMap ? tree->find("search") : nullptr;
  const ConfigTree* nested = tree->kind == ConfigNode::Kind::kMap ? tree->find("scenario") : nullptr;
  if (nested != nullptr && *nested)
    throw ConfigError((*nested)->location,
                      "a plan has no 'scenario': write its keys (model, workload, ...) beside 'search'");
  const ConfigTree* services = tree->kind == ConfigNode::Kind::kMap ? tree->find("services") : nullptr;
  if (services != nullptr && *services)
    throw ConfigError((*services)->location, "several services are planned by 'roofcast plan' and by plan() of Python");
  if (search == nullptr)
    throw ConfigError(tree->location, "a plan is a scenario with 'search: {gpus: [...], max_gpus: N, ...}'");
  plan.space.scenario = scenario_of(tree);
  ConfigReader in(*search, "a search");
  plan.max_gpus = static_cast<int>(in.integer("max_gpus", 8, {1, 1e6}));
  const std::vector<std::string> gpus = read_space(plan, in);
  read_modes(plan, in);
  read_disaggregation(plan, gpus, in);
  plan.goal = static_cast<PlanGoal>(in.choice("goal", kGoals, all_at_once(tree) ? 2 : 0));
  plan.spare_replicas = static_cast<int>(in.integer("spare_replicas", 0, {0, 1000}));
  plan.availability = in.number("availability", 0.0, {0.0, 0.999999});
  if (plan.availability > 0 && in.has("spare_replicas"))
    in.fail("availability", "'availability' finds the spare replicas itself; leave out 'spare_replicas'");
  if (plan.availability > 0 && plan.disaggregated)
    in.fail("availability",
            "'availability' needs replicas that all do the same; 'modes: [disaggregated]' takes "
            "'spare_replicas'");
  plan.zones = read_zones(plan, in);
  plan.max_cost = in.price("max_cost", UsdPerHour{0});
  plan.max_power = in.power("max_power", Watts{0});
  if (in.has("max_cost") && plan.max_cost.value <= 0) in.fail("max_cost", "'max_cost' must be more than 0");
  if (in.has("max_power") && plan.max_power.value <= 0) in.fail("max_power", "'max_power' must be more than 0");
  plan.confidence = in.number("confidence", 0.9, {0.0, 0.99});
  plan.load_uncertainty = in.number("load_uncertainty", 0.0, {0.0, 1.0});
  plan.goodput = in.number("goodput", 0.0, {0.0, 0.9999});
  if (in.has("goodput") && plan.goodput <= 0) in.fail("goodput", "'goodput' must be more than 0");
  plan.growth = read_growth(plan, in);
  plan.slice = in.time("slice", Seconds(0));
  if (in.has("slice") && plan.slice < Seconds(1)) in.fail("slice", "'slice' must be at least 1 s");
  plan.grams_co2_per_kwh = in.number("carbon_intensity", 0.0, kAtLeastZero);
  plan.power_usage_effectiveness = in.number("power_usage_effectiveness", 1.0, {1.0, 5.0});
  read_only(plan, in.optional_child("only"));
  in.finish();
  if (plan.space.grid_points() > kMaxCandidates) {
    throw ConfigError((*search)->location, fmt::format("{:.3g} candidates are too many, {:.0f} is the most",
                                                       plan.space.grid_points(), kMaxCandidates));
  }
  return plan;
}

}  // namespace roofcast
