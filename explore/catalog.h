#pragma once
// The choices for a setup.

#include <nlohmann/json.hpp>

namespace roofcast::explore {

/// [{name, family, parameters, active_parameters, max_context, attention}], attention: grouped | latent | none.
nlohmann::ordered_json models_json();
/// [{name, architecture, memory_bytes, memory_bytes_per_s, dense_tflop_per_s: {format: x}, usd_per_hour, ...}]
nlohmann::ordered_json gpus_json();
/// [{name, version}]
nlohmann::ordered_json engines_json();
/// {version, formats, recipes, speculation, attention, keys, limits}
nlohmann::ordered_json choices_json();

}  // namespace roofcast::explore
