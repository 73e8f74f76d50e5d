#include "sim/plan/what_fits.h"

#include <fmt/format.h>

#include "base/text.h"
#include "sim/model/recipes.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

constexpr double kUsualShare = 0.85;  ///< a common launch setting of SGLang if its default leaves too little

bool fits(const Deployment& d) {
  try {
    check_sharding(d.model, d.sharding, {});
  } catch (const ConfigError&) {
    return false;  // heads or experts that cannot be split so
  }
  return !plan_memory(d).infeasible;
}

}  // namespace

std::string what_would_fit(const Deployment& deployment) {
  std::vector<std::string> changes;
  for (int tp = deployment.sharding.tp * 2; tp <= 64; tp *= 2) {
    Deployment more = deployment;
    more.sharding.tp = tp;
    if (!fits(more)) continue;
    changes.push_back(fmt::format("--tp {}", tp));
    break;
  }
  for (const Dtype weights : {Dtype::kFp8, Dtype::kInt4}) {
    if (element_bits(weights) >= element_bits(deployment.precision.weights)) continue;
    Deployment narrower = deployment;
    set_weights(narrower.precision, weights);
    if (!fits(narrower)) continue;
    changes.push_back(fmt::format("--weights {}", name_of(weights)));
    break;
  }
  if (deployment.engine.memory_rule == MemoryRule::kStaticShare && deployment.engine.gpu_memory_utilization <= 0) {
    Deployment more = deployment;
    more.engine.gpu_memory_utilization = kUsualShare;
    if (fits(more)) changes.push_back(fmt::format("--set engine.gpu_memory_utilization={}", kUsualShare));
  }
  return changes.empty() ? std::string() : fmt::format("; {} would fit", join(changes, " or "));
}

}  // namespace roofcast
