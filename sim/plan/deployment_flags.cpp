#include "sim/plan/deployment_flags.h"

#include <algorithm>
#include <array>

namespace roofcast {
namespace {

constexpr std::array kFlags{
    DeploymentFlag{"model", "model", "NAME|FILE: a name in configs/models, a YAML file or a Hugging Face config.json"},
    DeploymentFlag{"gpu", "gpu", "NAME|FILE"},
    DeploymentFlag{"engine", "engine", "NAME|FILE (default vllm)"},
    DeploymentFlag{"tp", "parallelism.tp", "tensor-parallel GPUs (default 1)"},
    DeploymentFlag{"pp", "parallelism.pp", "pipeline stages (default 1)"},
    DeploymentFlag{"dp", "parallelism.replicas", "replicas behind a router (default 1)"},
    DeploymentFlag{"ep", "parallelism.ep", "expert-parallel GPUs (default 1)"},
    DeploymentFlag{"attention-dp", "parallelism.attention_dp",
                   "copies of the attention over one set of experts (default 1)"},
    DeploymentFlag{"weights", "precision.weights", "DTYPE or recipe of the weights (default: the checkpoint's)"},
    DeploymentFlag{"activations", "precision.activations", "DTYPE of the products (default: the checkpoint's)"},
    DeploymentFlag{"kv-cache-dtype", "precision.kv_cache", "DTYPE of the KV cache (default: the checkpoint's)"},
    DeploymentFlag{"price", "price", "TIER: on_demand | reserved_1y | reserved_3y | spot | owned (default on_demand)"},
};

}  // namespace

std::span<const DeploymentFlag> deployment_flags() { return kFlags; }

std::string query_name(const DeploymentFlag& flag) {
  std::string name = flag.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace roofcast
