#pragma once
// Conditions of a sweep: `parallelism.tp * parallelism.pp <= 8`, `gpu != l40s`.

#include <string_view>

#include "base/config_node.h"

namespace roofcast {

/// Whether the comparison holds for a scenario. Words are keys of the scenario, or else names. Numbers in the scenario
/// may have units (`6 /s` compares as 6). Operators: + - * / ( ) and == != < <= > >=; a minus between words needs
/// spaces. Throws ConfigError at `location` for syntax errors.
bool holds(std::string_view condition, const ConfigTree& scenario, const SourceLocation& location);

/// The value at a dotted key; null if absent. `gpu.name` of `gpu: h100-sxm` is h100-sxm.
ConfigTree value_at(const ConfigTree& tree, std::string_view dotted_key);

}  // namespace roofcast
