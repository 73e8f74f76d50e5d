#include "reports/idle_estimate.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "reports/estimate_report.h"
#include "sim/plan/idle_settings.h"
#include "sim/plan/steady_load.h"

namespace roofcast::reports {
namespace {

/// What the simulation asks for, and an estimate mostly does not, or what binds at some lengths alone.
constexpr std::array<std::string_view, 28> kOfSimulation{
    "policy",
    "max_queue",
    "seed",
    "router",
    "failures",
    "autoscaling",
    "objectives",
    "engine.prefix_caching",
    "engine.kv_offload",
    "engine.kv_tiers",
    "engine.preemption",
    "engine.victim",
    "engine.attention_kernel",
    "engine.watermark",
    "engine.chunked_prefill",
    "engine.stream_interval",
    "engine.receive_interval",
    "engine.sampling",
    "engine.block_size",
    "engine.scheduler",
    "engine.api_servers",
    "engine.batch_wait",
    "engine.rank_choice",
    "engine.start_time",
    "engine.handover_time",
    "engine.reserve_output_ratio",
    "engine.state_checkpoints",
    "engine.host.scatter",
};

}  // namespace

std::vector<std::string> idle_in_estimate(const ConfigTree& scenario, const Scenario& read, Fidelity fidelity,
                                          const EstimateRequest& request, const Estimate& estimate) {
  std::vector<std::string_view> written;
  std::copy_if(kOfSimulation.begin(), kOfSimulation.end(), std::back_inserter(written),
               [&](std::string_view key) { return writes(scenario, key); });
  if (written.empty()) return {};
  std::vector<std::string> lines;
  Estimate bare = estimate;  // without what takes long
  bare.steady.reset();
  const std::string answer = estimate_json(bare, *read.deployment).dump();
  const std::vector<std::string> said = idle_settings(scenario, read);
  for (const std::string_view key : written) {
    const auto names_it = [&](const std::string& line) { return line.starts_with(fmt::format("{} ", key)); };
    if (std::any_of(said.begin(), said.end(), names_it)) continue;
    try {
      const Scenario without =
          read_scenario(with_assignment(scenario, std::string(key) + "=null", std::string(key)), fidelity);
      Estimate changed = roofcast::estimate(without.deployment, request);
      bool same = estimate_json(changed, *without.deployment).dump() == answer;
      if (same && estimate.steady) {
        changed.steady = steady_load(without.deployment, request);
        same = estimate_json(changed, *without.deployment).dump() == estimate_json(estimate, *read.deployment).dump();
      }
      if (same) lines.push_back(fmt::format("{} changes nothing in this estimate", key));
    } catch (const ConfigError&) {  // needed, as it seems
    }
  }
  return lines;
}

}  // namespace roofcast::reports
