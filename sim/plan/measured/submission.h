#pragma once
// Benchmark submissions (MLPerf Inference): system, model, load scenario and result.

#include <optional>

#include "base/config_node.h"
#include "sim/plan/launch_recipe.h"
#include "sim/plan/measured/run_table.h"

namespace roofcast {

/// The scenario of one submission, according to its recipe:
///   submissions:
///     systems:  [{name: PATTERN, gpu, gpus}]                    matched with column `system`; the first match counts
///     models:   [{name: PATTERN, model, server, interactive}]   matched with column `model`; workloads per load
///     scenario launches: [{model, gpu, scenario: PATTERN, engine: {...}, precision: {...}, parallelism: {...},
///                 requests, source}]
///               all matches, later ones override earlier ones; `requests`: minimum number of samples
/// The scenario `Offline` sends the requests of the server workload all at once. Replicas fill the system. Throws
/// ConfigError if the recipe knows neither system, model nor launch settings.
ConfigTree submission_scenario(const std::optional<LaunchRecipe>& recipe, const RunColumns& columns, std::size_t row);

}  // namespace roofcast
