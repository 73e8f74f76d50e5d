#pragma once
#include <string>

#include "sim/plan/search/capacity_search.h"

namespace roofcast {

/// The commands that launch a planned fleet of `model`, a repository or a folder: every server, on one node or several,
/// and of a disaggregated fleet the engine's own router. engine: vllm | sglang | trtllm | llama-cpp; form: shell |
/// compose | kubernetes. Throws ConfigError for others.
std::string launch_command(const PlannedDeployment& planned, const std::string& engine, const std::string& model,
                           const std::string& form = "shell");

/// Throws ConfigError unless one of the four.
void check_launch_engine(const std::string& engine);

}  // namespace roofcast
