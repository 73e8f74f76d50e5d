#pragma once
// A row of a table of measured runs as the scenario that a user could have written.

#include <optional>
#include <string>

#include "sim/plan/launch_recipe.h"
#include "sim/plan/measured/run_table.h"
#include "sim/plan/spec_cache.h"

namespace roofcast {

/// The recipe that a row's `recipe`, `protocol` or `source` names, else one whose tables have these columns.
std::optional<LaunchRecipe> recipe_of_row(const RunColumns& columns, std::size_t row);

/// The engine release of a row: its version where it is one; else, with a recipe that says so, what ran on the day of
/// the measurement; else that day. Empty: the newest.
std::string release_of_row(RunKind kind, const RunColumns& columns, std::size_t row,
                           const std::optional<LaunchRecipe>& recipe);

/// Launch settings come from the row's columns; blank ones are left to the engine's release and the recipe. Throws
/// ConfigError for cells that cannot be read and names that are not known.
ConfigTree scenario_of_row(RunKind kind, const RunColumns& columns, std::size_t row, SpecCache& specs);

}  // namespace roofcast
