#include "sim/serve/autoscaler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace roofcast {
namespace {

constexpr std::array kPolicies{
    ScalingPolicyName{"queue", "waiting prompts per replica"},
    ScalingPolicyName{"concurrency", "requests in flight, a replica"},
    ScalingPolicyName{"utilization", "running sequences as a share of max_num_seqs"},
};

}  // namespace

std::span<const ScalingPolicyName> scaling_policies() { return kPolicies; }

AutoscalingSpec parse_autoscaling(ConfigReader& in) {
  constexpr double kMost = 4096;
  AutoscalingSpec spec;
  spec.min = static_cast<int>(in.integer("min", spec.min, {0, kMost}));
  spec.max = static_cast<int>(in.integer("max", {1, kMost}));
  if (spec.max < spec.min) in.fail("max", fmt::format("'max' must be at least 'min', {}", spec.min));
  std::vector<std::string_view> names;
  for (const ScalingPolicyName& policy : kPolicies) names.push_back(policy.name);
  spec.policy = static_cast<ScalingPolicy>(in.choice("policy", names, static_cast<std::size_t>(spec.policy)));
  if (spec.policy == ScalingPolicy::kUtilization) {
    spec.target = in.number("target", 0.7, {0.01, 1.0});
  } else {
    spec.target = in.number("target", spec.policy == ScalingPolicy::kQueue ? 4 : spec.target, {0.01, 1e6});
  }
  spec.interval = in.time("interval", spec.interval);
  if (spec.interval < Seconds(0.1)) in.fail("interval", "'interval' must be at least 0.1 s");
  spec.scale_up_delay = in.time("scale_up_delay", spec.scale_up_delay);
  spec.scale_down_delay = in.time("scale_down_delay", spec.scale_down_delay);
  return spec;
}

int Autoscaler::wish(const FleetLoad& load, int current) const {
  double replicas = 0;
  switch (spec_.policy) {
    case ScalingPolicy::kQueue: {
      const double now = std::max(1, current), over = load.waiting / now / spec_.target;
      replicas = over > 1 ? now * std::min(over, 2.0) : load.waiting > 0 ? now : current - 1;
      break;
    }
    case ScalingPolicy::kConcurrency:
      replicas = (load.waiting + load.running) / spec_.target;
      break;
    case ScalingPolicy::kUtilization:
      replicas = (load.waiting + load.running) / (load.max_sequences * spec_.target);
      break;
  }
  if (load.waiting + load.running > 0) replicas = std::max(replicas, 1.0);
  return static_cast<int>(std::clamp(std::ceil(replicas - 1e-9), double(spec_.min), double(spec_.max)));
}

int Autoscaler::wanted(SimTime now, const FleetLoad& load, int current) {
  past_.push_back({now, wish(load, current)});
  const SimTime longest = SimTime::of(std::max(spec_.scale_up_delay, spec_.scale_down_delay));
  while (past_.front().at + longest < now) past_.pop_front();  // the newest entry is from now
  int fewest = spec_.max, most = spec_.min;
  for (const Wish& w : past_) {
    if (w.at + SimTime::of(spec_.scale_up_delay) >= now) fewest = std::min(fewest, w.replicas);
    if (w.at + SimTime::of(spec_.scale_down_delay) >= now) most = std::max(most, w.replicas);
  }
  return fewest > current ? fewest : std::min(most, current);
}

}  // namespace roofcast
