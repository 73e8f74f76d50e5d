#pragma once
// Entries of a contest (MLPerf Inference): a system's name, a model, a kind of load and what it reached.

#include <optional>

#include "base/config_node.h"
#include "sim/plan/launch_recipe.h"
#include "sim/plan/measured/run_table.h"

namespace roofcast {

/// The scenario of one entry, from what its recipe says of such entries:
///   submissions:
///     systems:  [{name: PATTERN, gpu, gpus}]                    of the column `system`, the first that fits
///     models:   [{name: PATTERN, model, server, interactive}]   of the column `model`; the workloads of both loads
///     launches: [{model, gpu, scenario: PATTERN, engine: {...}, precision: {...}, parallelism: {...},
///                 requests, source}]
///               all that fit, later ones over earlier ones; `requests`: samples sent at least, of one run
/// The load `Offline` sends the requests of the server's workload all at once. Replicas fill the system. Throws
/// ConfigError where the recipe does not know the system, the model or how they were launched.
ConfigTree submission_scenario(const std::optional<LaunchRecipe>& recipe, const RunColumns& columns, std::size_t row);

}  // namespace roofcast
