#include "sim/plan/deployment_flags.h"

#include <algorithm>
#include <array>

namespace roofcast {
namespace {

constexpr std::array kFlags{
    DeploymentFlag{"model", "model",
                   "NAME|FILE: a name (roofcast models), a Hugging Face id, or a YAML file, config.json or its folder"},
    DeploymentFlag{"gpu", "gpu", "NAME|FILE: a name (roofcast gpus), or a YAML file"},
    DeploymentFlag{"engine", "engine", "NAME|FILE: NAME[@VERSION] (roofcast engines), or a YAML file (default vllm)"},
    DeploymentFlag{"tp", "parallelism.tp", "tensor-parallel GPUs (default: the scenario's, else 1)"},
    DeploymentFlag{"pp", "parallelism.pp", "pipeline stages (default: the scenario's, else 1)"},
    DeploymentFlag{"dp", "parallelism.replicas", "replicas behind a router (default: the scenario's, else 1)"},
    DeploymentFlag{"ep", "parallelism.ep", "expert-parallel GPUs (default: the scenario's, else 1)"},
    DeploymentFlag{"dcp", "parallelism.dcp",
                   "tensor-parallel GPUs that split a KV cache by tokens (default: the scenario's, else 1)"},
    DeploymentFlag{"attention-dp", "parallelism.attention_dp",
                   "data-parallel attention ranks over one set of experts (default: the scenario's, else 1)"},
    DeploymentFlag{"weights", "precision.weights",
                   "DTYPE: format of the weights, or a recipe (default: the checkpoint's)"},
    DeploymentFlag{"activations", "precision.activations",
                   "DTYPE: format of the activations (default: the checkpoint's)"},
    DeploymentFlag{"kv-cache-dtype", "precision.kv_cache", "DTYPE: format of the KV cache (default: the checkpoint's)"},
    DeploymentFlag{"price", "price", "TIER: on_demand | reserved_1y | reserved_3y | spot | owned (default on_demand)"},
};

}  // namespace

std::span<const DeploymentFlag> deployment_flags() { return kFlags; }

std::string query_name(const DeploymentFlag& flag) {
  std::string name = flag.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

ConfigTree with_trace(const ConfigTree& scenario, const std::string& file, const std::string& format) {
  const SourceLocation location{"--trace", 0, 0};
  const auto word = [](const std::string& text, const char* flag) {
    return make_scalar(text, SourceLocation{flag, 0, 0});
  };
  ConfigTree tree = with_value(scenario, "workload", make_map({}, location), "--trace");
  tree = with_value(tree, "workload.arrivals.process", word("trace", "--trace"), "--trace");
  tree = with_value(tree, "workload.arrivals.file", word(file, "--trace"), "--trace");
  if (format.empty()) return tree;
  return with_value(tree, "workload.arrivals.format", word(format, "--trace-format"), "--trace-format");
}

}  // namespace roofcast
