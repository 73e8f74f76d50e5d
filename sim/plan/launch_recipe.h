#pragma once
// Launch recipes: settings on top of a release's defaults, each by a rule with its source.

#include <optional>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "sim/plan/rules.h"

namespace roofcast {

/// One rule of configs/recipes: engine settings and formats that apply if `when` holds.
struct LaunchRule {
  ConfigTree when, engine, precision;
  std::vector<std::string> unread;  ///< columns of measured runs that the engine ignored
  std::string source;
};

/// Measured runs that validate the widths of intervals (configs/uncertainty/serving.yaml).
struct ValidatedRuns {
  ConfigTree when;  ///< the deployments that they represent
  int rows = 0;
};

struct LaunchRecipe {
  std::string name, help, source;
  std::vector<std::string> engines;      ///< engines that the recipe applies to; empty: any
  std::vector<LaunchRule> rules;         ///< later rules override earlier ones
  std::vector<ValidatedRuns> validated;  ///< outside of these, intervals are as wide as without a recipe
  /// The rest describes tables of measured runs: facts about the source that their columns omit.
  std::string client;                ///< the client that sent the requests: a name in configs/clients
  ConfigTree clients;                ///< {task or "isl/osl": client}: overrides `client` for such rows
  std::vector<std::string> also;     ///< aliases
  ConfigTree images;                 ///< {engine: [{since: DAY, version}]}: releases by date
  ConfigTree parts;                  ///< {gpu name in the source: name in configs/hardware}
  std::vector<std::string> columns;  ///< columns by which its tables are recognised
  ConfigTree submissions;            ///< how the rows of its tables were launched (sim/plan/measured/submission.h)
};
/// Reads a document of configs/recipes.
LaunchRecipe parse_launch_recipe(const ConfigTree& tree);
/// The recipe with that name or alias. Throws ConfigError with the nearest name.
LaunchRecipe find_launch_recipe(const std::string& name, const SourceLocation& origin);

/// Names and aliases of all recipes.
std::vector<std::string> launch_recipe_names();

/// The recipe with that name or alias, if it exists.
std::optional<LaunchRecipe> known_launch_recipe(const std::string& name);

/// The release that the recipe's source ran on `day`, from `images`. `engine` may be "trtllm-workers" for disaggregated
/// prefill and decode. Without a day, the newest release. Empty: unknown.
std::string image_on(const LaunchRecipe& recipe, const std::string& engine, const std::string& day);

/// Settings of the rules that apply, as scenario maps {engine: {...}, precision: {...}}; either may be null. Amounts
/// (see evaluate_amount) are evaluated; those with unknown quantities are omitted. Throws ConfigError if the recipe
/// does not apply to this engine.
struct LaunchSettings {
  ConfigTree engine, precision;
};
/// max_num_seqs of the release, or the scenario's own.
struct SequenceLimit {
  double max_num_seqs = 0;
  bool from_scenario = false;  ///< rules then do not change it
};
LaunchSettings settings_of(const LaunchRecipe& recipe, const DeploymentFacts& facts, SequenceLimit limit,
                           const SourceLocation& origin);

/// Whether the date of the client matters: `images` has dates, or a rule depends on it.
bool asks_for_day(const LaunchRecipe& recipe);

/// The ignored columns (LaunchRule::unread) for runs with these facts.
std::vector<std::string> unread_columns(const LaunchRecipe& recipe, const DeploymentFacts& facts);

}  // namespace roofcast
