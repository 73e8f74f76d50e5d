#include "sim/plan/disaggregation.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "sim/plan/scenario.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

constexpr std::array<std::string_view, 4> kOwnKeys{"gpu", "engine", "parallelism", "precision"};
constexpr std::array<std::string_view, 6> kCommonKeys{"model", "routing", "adapters", "speculation", "recipe", "price"};

bool is_one_of(std::span<const std::string_view> names, const std::string& key) {
  return std::find(names.begin(), names.end(), key) != names.end();
}

}  // namespace

ConfigTree prefill_scenario(const ConfigTree& scenario, const ConfigTree& changes) {
  auto base = std::make_shared<ConfigNode>(*scenario);
  std::erase_if(base->entries, [](const ConfigNode::Entry& entry) {
    const bool deployment = is_one_of(kOwnKeys, entry.key) || is_one_of(kCommonKeys, entry.key);
    return !deployment || entry.key == "parallelism" || entry.key == "speculation";
  });
  ConfigTree tree = base;
  if (!changes) return tree;
  for (const ConfigNode::Entry& entry : changes->entries) {
    if (entry.key == "autoscaling") continue;
    const bool merged = entry.value && entry.value->kind == ConfigNode::Kind::kMap && entry.key != "parallelism" &&
                        entry.value->find("name") == nullptr && base->find(entry.key) != nullptr;
    if (!merged) {
      tree = with_value(tree, entry.key, entry.value, "disaggregation");
      continue;
    }
    for (const ConfigNode::Entry& sub : entry.value->entries)
      tree = with_value(tree, entry.key + "." + sub.key, sub.value, "disaggregation");
  }
  return tree;
}

Disaggregation parse_disaggregation(ConfigReader in, const ConfigTree& scenario, const Deployment& decode,
                                    SpecCache& specs, const DeploymentUse& use) {
  Disaggregation out;
  const ConfigTree changes = in.tree("prefill");
  if (changes) {
    ConfigReader prefill(changes, "prefill");
    for (std::string_view key : kOwnKeys) prefill.ignore(key);
    prefill.ignore("autoscaling");  // of the fleet: read_scenario
    prefill.finish();
  }
  ConfigReader worker(prefill_scenario(scenario, changes), "prefill");
  auto deployment = std::make_shared<Deployment>(
      *read_deployment(worker, decode.fidelity, out.prefill_replicas, specs, {use.workload, true, use.load}));
  worker.finish();
  if (deployment->precision.kv_cache != decode.precision.kv_cache) {
    throw ConfigError(in.location(),
                      fmt::format("prefill keeps its cache in {} and decode in {}; what is sent must be read as it is",
                                  name_of(deployment->precision.kv_cache), name_of(decode.precision.kv_cache)));
  }
  out.prefill = std::move(deployment);
  out.bandwidth = in.bandwidth("bandwidth", BytesPerSecond(0));
  out.latency = in.time("latency", decode.engine.handover_time);
  in.finish();
  return out;
}

}  // namespace roofcast
