#pragma once
#include <string>

#include "reports/launch_checkpoint.h"
#include "sim/plan/search/capacity_search.h"

namespace roofcast::reports {

/// The commands that launch a planned fleet with the weights `from`: every server, on one or several nodes, and for a
/// disaggregated fleet the engine's router. engine: vllm | sglang | trtllm | llama-cpp; form: shell | compose |
/// kubernetes. Throws ConfigError for others.
std::string launch_command(const PlannedDeployment& planned, const std::string& engine, const Checkpoints& from,
                           const std::string& form = "shell");

/// Throws ConfigError for an unknown engine.
void check_launch_engine(const std::string& engine);

}  // namespace roofcast::reports
