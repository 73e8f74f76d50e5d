#include "sim/plan/search/advice.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/plan/search/fleet_size.h"
#include "sim/plan/serving_intervals.h"

namespace roofcast {
namespace {

/// One search of those below.
std::optional<PlannedDeployment> answer_of(const PlanSpec& plan, SearchOptions options) {
  options.advise = false;
  try {
    PlanResult found = search_capacity(plan, options);
    if (found.ranked.empty()) return std::nullopt;
    return std::move(found.ranked.front());
  } catch (const ConfigError&) {  // what is searched here is not what the user wrote: a load too small to simulate
    return std::nullopt;
  }
}

/// Nothing but the number of GPUs and their price stands in the way.
bool larger_fleets_help(const PlanResult& r) {
  return (!r.candidates.empty() || r.too_dear > 0) && r.kind != LoadKind::kWhole;
}

std::string power_line(const PlannedDeployment& p, const PlanSpec& plan) {
  return fmt::format("max_power ({:.3g} kW; it draws up to {:.3g} kW)", plan.max_power.value / 1e3,
                     p.power_bound().value / 1e3);
}

/// Limits of the search that a fleet found without them does not keep.
std::vector<std::string> limits_beyond(const PlannedDeployment& found, const PlanSpec& plan) {
  std::vector<std::string> out;
  if (plan.max_cost.value > 0 && found.usd_per_hour() > plan.max_cost.value * (1 + 1e-9))
    out.push_back(fmt::format("max_cost ({:.2f} USD/h)", plan.max_cost.value));
  if (!within_power(found, plan)) out.push_back(power_line(found, plan));
  if (found.gpus() > plan.max_gpus) out.push_back(fmt::format("max_gpus ({})", plan.max_gpus));
  for (const auto& [gpu, count] : plan.available) {
    const int used =
        (found.candidate.scenario.deployment->gpu.name == gpu ? found.candidate.gpus() * found.paid().replicas : 0) +
        (found.candidate.disaggregated() && found.candidate.prefill().gpu.name == gpu
             ? found.candidate.prefill_gpus() * found.paid().prefill_replicas
             : 0);
    if (used > count) out.push_back(fmt::format("the {} x {} available", count, gpu));
  }
  return out;
}

void find_larger(const PlanResult& r, const PlanSpec& plan, const SearchOptions& options, Advice& advice) {
  constexpr int kMostGpus = 4096, kMostTimes = 64;
  if (!larger_fleets_help(r)) return;
  PlanSpec larger = plan;
  larger.available.clear();
  larger.max_cost = {}, larger.max_power = {};
  for (int times = 1; times <= kMostTimes && plan.max_gpus * times <= kMostGpus; times *= 4) {
    larger.max_gpus = plan.max_gpus * times;
    const auto found = answer_of(larger, options);
    if (!found) continue;
    advice.gpus = found->gpus();
    advice.usd_per_hour = found->usd_per_hour();
    advice.fleet = in_words(*found);
    advice.beyond = limits_beyond(*found, plan);
    return;
  }
}

void find_carried(const PlanResult& r, const PlanSpec& plan, const SearchOptions& options, Advice& advice) {
  if (r.kind != LoadKind::kRate && r.kind != LoadKind::kUsers) return;
  PlanSpec most = plan;
  most.goal = PlanGoal::kThroughput;
  const auto found = answer_of(most, options);
  if (!found) return;
  advice.carries = found->load;
  advice.carries_on = in_words(*found);
}

/// The plan with these objectives alone.
PlanSpec with_objectives(const PlanSpec& plan, ConfigTree objectives) {
  auto scenario = std::make_shared<ConfigNode>(*plan.space.scenario);
  for (ConfigNode::Entry& e : scenario->entries) {
    if (e.key == "objectives") e.value = objectives;
  }
  PlanSpec out = plan;
  out.space.scenario = scenario;
  return out;
}

/// What the deployment meets: the sampled percentile, or what nine of ten deployments like it stay below, whichever is
/// later. Nothing where that is within the limit.
std::optional<std::string> relaxed(const Objective& o, const PlannedDeployment& found, const PlanSpec& plan) {
  const LogSpread spread = quick_spread(found.candidate.scenario, found.result.metrics, o.name());
  const double forecast = observed(o, found.result.metrics).base();
  const double seconds = std::max(upper_confidence(o, found.result.metrics).base(),
                                  plan.confidence > 0 ? forecast * std::exp(spread.high) : 0.0);
  if (seconds <= o.limit.base()) return std::nullopt;
  const auto words = [](double time) {
    return time < 1 ? fmt::format("{:.3g} ms", time * 1e3) : fmt::format("{:.3g} s", time);
  };
  return fmt::format("{} from {} to {}", o.name(), words(o.limit.base()), words(seconds));
}

/// Where no single limit stands in the way: all of them.
void relax_all(const PlanSpec& plan, const std::vector<Objective>& asked, const SearchOptions& options,
               Advice& advice) {
  const auto found = answer_of(with_objectives(plan, make_map()), options);
  if (!found) return;
  std::string all;
  for (const Objective& o : asked) {
    if (const auto one = relaxed(o, *found, plan)) all += (all.empty() ? "" : " and ") + *one;
  }
  if (!all.empty()) advice.relax.push_back(all + ", on " + in_words(*found));
}

/// The limit that would hold where the others stand as they are.
void relax_each(const PlanSpec& plan, const SearchOptions& options, Advice& advice) {
  const ConfigTree* objectives = plan.space.scenario->find("objectives");
  if (objectives == nullptr || !*objectives || plan.goodput > 0) return;
  const std::vector<Objective> asked = parse_objectives(ConfigReader(*objectives, "objectives"));
  for (const ConfigNode::Entry& entry : (*objectives)->entries) {
    auto fewer = std::make_shared<ConfigNode>(**objectives);
    std::erase_if(fewer->entries, [&](const ConfigNode::Entry& e) { return e.key == entry.key; });
    const auto found = answer_of(with_objectives(plan, fewer), options);
    if (!found) continue;
    for (const Objective& o : asked) {
      if (entry.key != o.name() && entry.key != name_of(o.metric)) continue;
      if (const auto one = relaxed(o, *found, plan)) advice.relax.push_back(*one + ", on " + in_words(*found));
    }
  }
  if (advice.relax.empty() && advice.gpus == 0 && asked.size() > 1) relax_all(plan, asked, options, advice);
}

/// The objective that is nearest to its limit, or the furthest beyond, as far as nine of ten deployments like it may
/// be.
std::string binding(const PlanResult& r, const PlanSpec& plan) {
  if (!r.nearest) return "";
  const LoadResult& result = r.nearest->result;
  const std::string power = within_power(*r.nearest, plan) ? "" : power_line(*r.nearest, plan);
  if (!power.empty() && result.met && r.nearest->probability.value_or(1) >= plan.confidence - 1e-9) return power;
  const auto ratio = [&](const Verdict& v) {
    const double sampled = v.upper / v.objective.limit;
    if (!r.nearest->probability) return sampled;
    const LogSpread spread = quick_spread(r.nearest->candidate.scenario, result.metrics, v.objective.name());
    return std::max(sampled, v.value / v.objective.limit * std::exp(spread.high));
  };
  const Verdict* worst = nullptr;
  for (const Verdict& v : result.verdicts) {
    if (worst == nullptr || ratio(v) > ratio(*worst)) worst = &v;
  }
  const std::string queue = result.stationary ? "" : "the queue, which grows without end";
  if (worst == nullptr || ratio(*worst) <= 1) return queue;
  const std::string name =
      worst->objective.name() +
      (worst->met ? fmt::format(", which must hold with probability {:.0f} %", 100 * plan.confidence) : "");
  return name + (queue.empty() ? "" : ", and " + queue);
}

}  // namespace

std::string in_words(const PlannedDeployment& p) {
  const Deployment& d = *p.candidate.scenario.deployment;
  const std::string fleet =
      p.candidate.disaggregated()
          ? fmt::format("{} prefill and {} decode workers", p.prefill_replicas, p.replicas)
          : fmt::format("{} replica{} of {}", p.replicas, p.replicas == 1 ? "" : "s", layout_of(d.sharding));
  return fmt::format("{} x {}, {}, {}, {}", p.gpus(), p.candidate.gpu, fleet, p.candidate.precision, d.engine.name);
}

Advice advice_for(const PlanResult& r, const PlanSpec& plan, const SearchOptions& options) {
  Advice advice;
  advice.binds = binding(r, plan);
  find_carried(r, plan, options, advice);
  find_larger(r, plan, options, advice);
  relax_each(plan, options, advice);
  return advice;
}

}  // namespace roofcast
