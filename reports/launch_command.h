#pragma once
#include <string>

#include "sim/plan/search/capacity_search.h"

namespace roofcast {

/// The shell command that launches one replica of `model`, a repository or a folder; of a disaggregated fleet one
/// worker of each role and what stands in front. engine: vllm | sglang | trtllm; throws ConfigError for another.
/// Flags: docs.vllm.ai (serve, NixlConnector usage), docs.sglang.io (server arguments, PD disaggregation), NVIDIA
/// TensorRT-LLM (trtllm-serve, disaggregated serving, quantization).
std::string launch_command(const PlannedDeployment& planned, const std::string& engine, const std::string& model);

/// Throws ConfigError unless one of the three.
void check_launch_engine(const std::string& engine);

}  // namespace roofcast
