#pragma once
// How somebody launches engines: settings laid over a release's defaults, each by a rule with its source.

#include <optional>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "sim/plan/rules.h"

namespace roofcast {

/// One rule of configs/recipes: settings of the engine and formats, in force where `when` holds.
struct LaunchRule {
  ConfigTree when, engine, precision;
  std::vector<std::string> unread;  ///< columns of a table of measured runs: asked for, but the engine never read them
  std::string source;
};

/// Measured runs by which the widths of intervals were checked (configs/uncertainty/serving.yaml).
struct ValidatedRuns {
  ConfigTree when;  ///< the deployments that they stand for
  int rows = 0;
};

struct LaunchRecipe {
  std::string name, help, source;
  std::vector<std::string> engines;      ///< engines that it launches; empty: any
  std::vector<LaunchRule> rules;         ///< later ones go over earlier ones
  std::vector<ValidatedRuns> validated;  ///< intervals are as wide as without a recipe elsewhere
  /// The rest is for tables of measured runs: what their columns leave out of how the source ran.
  std::string client;                ///< that sent the requests: a name of configs/clients
  ConfigTree clients;                ///< {task or "isl/osl": such a name}: in place of `client` in such rows
  std::vector<std::string> also;     ///< other names of the same
  ConfigTree images;                 ///< {engine: [{since: DAY, version}]}: the release that ran from a day on
  ConfigTree parts;                  ///< {gpu: name of configs/hardware that the source means by it}
  std::vector<std::string> columns;  ///< of its tables, which then need not name it
  ConfigTree submissions;            ///< how the rows of its tables were launched (sim/plan/measured/submission.h)
};
/// Reads a document of configs/recipes.
LaunchRecipe parse_launch_recipe(const ConfigTree& tree);
/// The recipe of that name or other name; throws ConfigError with the nearest.
LaunchRecipe find_launch_recipe(const std::string& name, const Mark& origin);

/// Names of all recipes, other names too.
std::vector<std::string> launch_recipe_names();

/// The recipe of that name or other name, where there is one.
std::optional<LaunchRecipe> known_launch_recipe(const std::string& name);

/// The release that the recipe's source ran on a day, of `images`: an engine, or "trtllm-workers" where prefill and
/// decode run apart. Without a day the newest. Empty: not known.
std::string image_on(const LaunchRecipe& recipe, const std::string& engine, const std::string& day);

/// Settings of the rules in force, as maps that a scenario could hold: {engine: {...}, precision: {...}}; either may be
/// null. Amounts (see evaluate_amount) are numbers; those with something unknown are left out. Throws ConfigError where
/// the recipe does not launch this engine.
struct LaunchSettings {
  ConfigTree engine, precision;
};
/// `seats`: max_num_seqs of the release or, where the scenario writes it, its own, which rules do not change.
struct Seats {
  double max_num_seqs = 0;
  bool told = false;
};
LaunchSettings settings_of(const LaunchRecipe& recipe, const DeploymentFacts& facts, Seats seats, const Mark& origin);

/// Whether the client's day counts: its images have days, or a rule asks for it.
bool asks_for_day(const LaunchRecipe& recipe);

/// The columns that runs with these facts left unread (LaunchRule::unread).
std::vector<std::string> unread_columns(const LaunchRecipe& recipe, const DeploymentFacts& facts);

}  // namespace roofcast
