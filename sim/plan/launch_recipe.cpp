#include "sim/plan/launch_recipe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/config_reader.h"
#include "base/config_release.h"
#include "base/text.h"

namespace roofcast {
namespace {

constexpr std::array<std::string_view, 2> kAmounts{"max_num_seqs", "max_num_batched_tokens"};
/// Columns of closed-loop tables that describe how an engine was launched.
const std::vector<std::string> kLaunchColumns{
    "kv_dtype",         "memory_fraction", "max_num_seqs",       "max_num_tokens",     "cuda_graph_max_batch",
    "async_scheduling", "chunked_prefill", "prefix_caching",     "prefill_wait_ratio", "prefill_wait_steps",
    "stream_interval",  "recv_interval",   "postprocess_workers"};

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

/// `settings` with its amounts as numbers.
ConfigTree with_amounts(const ConfigTree& settings, const DeploymentFacts& facts, SequenceLimit& limit) {
  auto out = std::make_shared<ConfigNode>(*settings);
  for (std::string_view key : kAmounts) {
    const auto entry = std::find_if(out->entries.begin(), out->entries.end(),
                                    [&](const ConfigNode::Entry& e) { return e.key == key; });
    if (entry == out->entries.end() || !entry->value) continue;
    if (!is_number(entry->value->scalar)) {
      const Amount amount = evaluate_amount(*entry->value, facts, limit.max_num_seqs);
      if (!amount.known) {
        out->entries.erase(entry);
        continue;
      }
      constexpr double kMost = 1 << 24;
      if (!(amount.value >= 1 && amount.value <= kMost))
        throw ConfigError(entry->value->location,
                          fmt::format("'{}' comes out at {:g}; it must be from 1 to {:.0f}", key, amount.value, kMost));
      entry->value = make_scalar(fmt::format("{:.0f}", amount.value), entry->value->location);
    }
    if (key == "max_num_seqs" && !limit.from_scenario)
      limit.max_num_seqs = std::strtod(entry->value->scalar.c_str(), nullptr);
  }
  return out;
}

}  // namespace

LaunchRecipe parse_launch_recipe(const ConfigTree& tree) {
  ConfigReader in(tree, "a recipe");
  LaunchRecipe recipe{.name = in.text("name"),
                      .help = in.text("help", ""),
                      .source = in.text("source", ""),
                      .engines = in.texts("engines"),
                      .rules = {},
                      .validated = {},
                      .client = in.text("client", ""),
                      .clients = in.tree("clients"),
                      .also = in.texts("also"),
                      .images = in.tree("images"),
                      .parts = in.tree("parts"),
                      .columns = in.texts("columns"),
                      .submissions = in.tree("submissions")};
  for (const ConfigTree& item : in.list("validated")) {
    ConfigReader runs(item, "validated runs of a recipe");
    recipe.validated.push_back({runs.tree("when"), static_cast<int>(runs.integer("rows", kAtLeastOne))});
    (void)runs.text("source");
    runs.finish();
    (void)holds(recipe.validated.back().when, {});
  }
  for (const ConfigTree& item : in.list("rules")) {
    ConfigReader rule(item, "a rule of a recipe");
    LaunchRule read{.when = rule.tree("when"),
                    .engine = rule.tree("engine"),
                    .precision = rule.tree("precision"),
                    .unread = rule.texts("unread"),
                    .source = rule.text("source")};
    rule.finish();
    for (const std::string& column : read.unread) {
      if (std::find(kLaunchColumns.begin(), kLaunchColumns.end(), column) == kLaunchColumns.end())
        throw ConfigError(item->location, unknown_name("launch column", column, kLaunchColumns));
    }
    for (const ConfigTree& settings : {read.engine, read.precision}) {
      if (settings && settings->kind != ConfigNode::Kind::kMap)
        throw ConfigError(settings->location, "what a rule sets must be a map");
    }
    (void)holds(read.when, {});  // throws for invalid keys
    for (const char* key : {"name", "version"}) {
      if (read.engine && read.engine->find(key) != nullptr)
        throw ConfigError(read.engine->location, fmt::format("a rule does not choose the engine: leave '{}' out", key));
    }
    recipe.rules.push_back(std::move(read));
  }
  in.finish();
  return recipe;
}

namespace {

/// All readable recipes by name and alias.
const std::map<std::string, LaunchRecipe>& all_recipes() {
  static const std::map<std::string, LaunchRecipe> known = [] {
    std::map<std::string, LaunchRecipe> recipes;
    for (const std::string& each : names_of("recipes")) {
      try {
        const LaunchRecipe recipe = parse_launch_recipe(load_named("recipes", each, SourceLocation{"recipes", 0, 0}));
        recipes.emplace(each, recipe);
        for (const std::string& other : recipe.also) recipes.emplace(other, recipe);
      } catch (const ConfigError&) {
        continue;  // it fails when requested by name
      }
    }
    return recipes;
  }();
  return known;
}

}  // namespace

std::vector<std::string> launch_recipe_names() {
  std::vector<std::string> names;
  for (const auto& [name, recipe] : all_recipes()) names.push_back(name);
  return names;
}

std::optional<LaunchRecipe> known_launch_recipe(const std::string& name) {
  const auto at = all_recipes().find(name);
  return at != all_recipes().end() ? std::optional(at->second) : std::nullopt;
}

LaunchRecipe find_launch_recipe(const std::string& name, const SourceLocation& origin) {
  if (auto recipe = known_launch_recipe(name)) return *std::move(recipe);
  return parse_launch_recipe(load_named("recipes", name, origin));
}

std::string image_on(const LaunchRecipe& recipe, const std::string& engine, const std::string& day) {
  const ConfigTree* list = recipe.images ? recipe.images->find(engine) : nullptr;
  std::string version;
  if (list == nullptr || !*list) return version;
  for (const ConfigTree& item : (*list)->items) {
    ConfigReader in(item, "an image of a recipe");
    const std::string since = in.text("since"), named = in.text("version");
    if (!is_date(since)) in.fail("since", fmt::format("'{}' must be a day as 2025-12-31", since));
    in.finish();
    if (day.empty() || since <= day) version = named;
  }
  return version;
}

LaunchSettings settings_of(const LaunchRecipe& recipe, const DeploymentFacts& facts, SequenceLimit limit,
                           const SourceLocation& origin) {
  const bool launches = recipe.engines.empty() ||
                        std::find(recipe.engines.begin(), recipe.engines.end(), facts.engine) != recipe.engines.end();
  if (!launches) {
    std::vector<std::string> others;
    for (const auto& [name, other] : all_recipes()) {
      const auto& engines = other.engines;
      if (name == other.name && (engines.empty() || std::count(engines.begin(), engines.end(), facts.engine) > 0))
        others.push_back(name);
    }
    throw ConfigError(
        origin,
        fmt::format("recipe '{}' does not launch {} (it launches {}){}", recipe.name, facts.engine,
                    join(recipe.engines, ", "),
                    others.empty() ? "" : fmt::format("; {} is launched by {}", facts.engine, join(others, ", "))));
  }
  LaunchSettings settings;
  const auto lay = [](ConfigTree& over, const ConfigTree& more) { over = over ? overlay(over, more) : more; };
  for (const LaunchRule& rule : recipe.rules) {
    if (!holds(rule.when, facts)) continue;
    if (rule.engine) lay(settings.engine, with_amounts(rule.engine, facts, limit));
    if (rule.precision) lay(settings.precision, rule.precision);
  }
  return settings;
}

bool asks_for_day(const LaunchRecipe& recipe) {
  return recipe.images || std::any_of(recipe.rules.begin(), recipe.rules.end(),
                                      [](const LaunchRule& rule) { return asks_for_day(rule.when); });
}

std::vector<std::string> unread_columns(const LaunchRecipe& recipe, const DeploymentFacts& facts) {
  std::vector<std::string> columns;
  for (const LaunchRule& rule : recipe.rules) {
    if (!rule.unread.empty() && holds(rule.when, facts))
      columns.insert(columns.end(), rule.unread.begin(), rule.unread.end());
  }
  return columns;
}

}  // namespace roofcast
