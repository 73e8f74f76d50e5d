#include "reports/idle_estimate.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "reports/estimate_report.h"
#include "sim/plan/idle_settings.h"
#include "sim/plan/search/idle_in_run.h"
#include "sim/plan/spec_cache.h"
#include "sim/plan/steady_load.h"
#include "sim/step/deployment.h"

namespace roofcast::reports {
namespace {

/// What only the simulation asks for.
constexpr std::array<std::string_view, 8> kOfSimulation{"policy",   "max_queue",   "seed",       "router",
                                                        "failures", "autoscaling", "objectives", "workload"};

}  // namespace

bool only_simulated(std::string_view key) {
  const std::string_view first = key.substr(0, key.find('.'));
  return first != "workload" && std::find(kOfSimulation.begin(), kOfSimulation.end(), first) != kOfSimulation.end();
}

std::vector<std::string> idle_in_estimate(const ConfigTree& scenario, const Scenario& read, Fidelity fidelity,
                                          const EstimateRequest& request, const Estimate& estimate) {
  std::vector<std::string> lines, said = idle_settings(scenario, read);
  SpecCache specs;
  Estimate bare = estimate;  // without the slow parts
  bare.steady.reset();
  const std::string quick = estimate_json(bare, *read.deployment).dump();
  const std::string whole = estimate.steady ? estimate_json(estimate, *read.deployment).dump() : quick;
  const auto same_answer = [&](const ConfigTree& tree) {
    const Scenario other = read_scenario(tree, fidelity, specs);
    EstimateRequest asked = request;
    asked.speculation = other.serving.speculation;
    Estimate changed = roofcast::estimate(other.deployment, asked);
    if (estimate_json(changed, *other.deployment).dump() != quick) return false;
    if (!estimate.steady) return true;
    changed.steady = steady_load(other.deployment, asked);
    return estimate_json(changed, *other.deployment).dump() == whole;
  };
  const auto say = [&](const std::vector<LeftOut>& settings) {
    for (const LeftOut& setting : settings) {
      if (!is_idle(setting, same_answer)) continue;
      lines.push_back(fmt::format("{} changes nothing in this estimate", setting.key));
      said.push_back(lines.back());
    }
  };
  for (const std::string_view key : kOfSimulation) say(left_out(scenario, key, said));
  // Each takes three estimates, about a millisecond. Whoever writes a whole GPU knows what it is for.
  constexpr std::size_t kMostSettings = 40;
  if (const std::vector<LeftOut> all = settings_left_out(scenario, said); all.size() <= kMostSettings) say(all);
  return lines;
}

}  // namespace roofcast::reports
