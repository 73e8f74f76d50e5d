#pragma once
// Converts a row of a table of measured runs to a scenario.

#include <optional>
#include <string>

#include "sim/plan/launch_recipe.h"
#include "sim/plan/measured/run_table.h"
#include "sim/plan/spec_cache.h"

namespace roofcast {

/// The recipe that a row's `recipe`, `protocol` or `source` names, else the one whose tables have these columns.
std::optional<LaunchRecipe> recipe_of_row(const RunColumns& columns, std::size_t row);

/// The engine release of a row: its version if that is a release; else what the recipe says ran on the day of the
/// measurement; else the newest on that day. Empty: the newest.
std::string release_of_row(RunKind kind, const RunColumns& columns, std::size_t row,
                           const std::optional<LaunchRecipe>& recipe);

/// Launch settings come from the row's columns; blank cells take the defaults of the engine release and the recipe.
/// Throws ConfigError for unreadable cells and unknown names.
ConfigTree scenario_of_row(RunKind kind, const RunColumns& columns, std::size_t row, SpecCache& specs);

}  // namespace roofcast
