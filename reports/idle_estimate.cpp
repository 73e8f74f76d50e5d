#include "reports/idle_estimate.h"

#include <algorithm>
#include <array>
#include <optional>
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
                                          const EstimateRequest& request, const Estimate& estimate, SpecCache* specs) {
  std::vector<std::string> lines, said = idle_settings(scenario, read);
  SpecCache own;
  Estimate bare = estimate;  // without the slow parts
  bare.steady.reset();
  std::optional<std::string> quick, whole;  // written only where a setting can be left out: few estimates have one
  const auto text = [&](std::optional<std::string>& known, const Estimate& e) -> const std::string& {
    if (!known) known = estimate_json(e, *read.deployment).dump();
    return *known;
  };
  const auto same_answer = [&](const ConfigTree& tree) {
    const Scenario other = read_scenario(tree, fidelity, specs != nullptr ? *specs : own);
    EstimateRequest asked = request;
    asked.speculation = other.serving.speculation;
    Estimate changed = roofcast::estimate(other.deployment, asked);
    if (estimate_json(changed, *other.deployment).dump() != text(quick, bare)) return false;
    if (!estimate.steady) return true;
    changed.steady = steady_load(other.deployment, asked);
    return estimate_json(changed, *other.deployment).dump() == text(whole, estimate);
  };
  const auto say = [&](const LeftOut& setting) {
    if (!is_idle(setting, same_answer)) return;
    lines.push_back(fmt::format("{} changes nothing in this estimate", setting.key));
    said.push_back(lines.back());
  };
  for (const std::string_view key : kOfSimulation)
    if (const auto setting = left_out(scenario, key, said)) say(*setting);
  constexpr std::size_t kMostSettings = 40;  // each takes three estimates, about a millisecond
  if (const std::vector<LeftOut> all = settings_left_out(scenario, said); all.size() <= kMostSettings)
    std::for_each(all.begin(), all.end(), say);
  return lines;
}

}  // namespace roofcast::reports
