#include "sim/plan/search/advice.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/config_library.h"
#include "sim/plan/search/condition.h"
#include "sim/plan/search/fleet_size.h"
#include "sim/plan/serving_intervals.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

/// Runs one of the searches below.
std::optional<PlannedDeployment> answer_of(const PlanSpec& plan, SearchOptions options) {
  options.advise = false;
  options.memory.reset();  // the memory belongs to another plan
  try {
    PlanResult found = search_capacity(plan, options);
    if (found.ranked.empty()) return std::nullopt;
    return std::move(found.ranked.front());
  } catch (const ConfigError&) {  // the modified plan is invalid, such as a load too small to simulate
    return std::nullopt;
  }
}

/// Whether only the number of GPUs and their price prevent an answer.
bool larger_fleets_help(const PlanResult& r) {
  return (!r.candidates.empty() || r.too_dear > 0) && r.kind != LoadKind::kWhole;
}

std::string power_line(const PlannedDeployment& p, const PlanSpec& plan) {
  return fmt::format("max_power ({:.3g} kW; it draws up to {:.3g} kW)", plan.max_power.value / 1e3,
                     p.power_bound().value / 1e3);
}

/// The limits of the search that a fleet, found without them, exceeds.
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

/// The plan with another load; empty if the workload does not state its load as one number.
std::optional<PlanSpec> with_load(const PlanSpec& plan, LoadKind kind, double load) {
  const ConfigTree& scenario = plan.space.scenario;
  const ConfigTree* workload = scenario->find("workload");
  const std::string name = kind == LoadKind::kUsers ? "concurrency" : "rate";
  if (workload == nullptr || !*workload) return std::nullopt;
  const ConfigTree whole = resolve_named("workloads", *workload);
  const std::string key = value_at(whole, "arrivals." + name) ? "arrivals." + name : name;  // of a client: the latter
  if (!value_at(whole, key)) return std::nullopt;
  const std::string text = kind == LoadKind::kUsers ? fmt::format("{:.0f}", load) : fmt::format("{:.12g} /s", load);
  PlanSpec out = plan;
  out.space.scenario =
      with_value(with_value(scenario, "workload", whole, "plan"), "workload." + key, make_scalar(text), "plan");
  return out;
}

/// Rounds to three digits, or to whole users.
double rounded_down(double load, LoadKind kind) {
  const double unit = kind == LoadKind::kUsers ? 1 : std::pow(10, std::floor(std::log10(load)) - 2);
  return std::floor(load / unit * (1 + 1e-9)) * unit;
}

/// Finds the highest load, within a tenth, for which the same search has an answer. It starts at the ratio of available
/// to needed GPUs.
void find_carried(const PlanResult& r, const PlanSpec& plan, const SearchOptions& options, Advice& advice) {
  constexpr int kMostHalvings = 8, kMostSteps = 6;
  if ((r.kind != LoadKind::kRate && r.kind != LoadKind::kUsers) || r.candidates.empty()) return;
  if (plan.goal == PlanGoal::kThroughput) return;  // there is no offered load
  const double asked = offered_load(*r.candidates.front().scenario.workload);
  double low = advice.gpus > plan.max_gpus ? asked * plan.max_gpus / advice.gpus : asked / 2, high = asked;
  const auto carries = [&](double load) {
    const std::optional<PlanSpec> one = load > 0 ? with_load(plan, r.kind, load) : std::nullopt;
    const auto found = one ? answer_of(*one, options) : std::nullopt;
    if (!found) return false;
    advice.carries = load, advice.carries_on = in_words(*found);
    return true;
  };
  for (int i = 0; i < kMostHalvings && low > 0 && !carries(low = rounded_down(low, r.kind)); ++i) high = low, low /= 2;
  for (int i = 0; i < kMostSteps && advice.carries > 0 && high > 1.1 * low; ++i) {
    const double middle = rounded_down(std::sqrt(low * high), r.kind);
    if (middle <= low) break;
    (carries(middle) ? low : high) = middle;
  }
}

/// Where a plan states objectives: its own (or its workload's), or those of a kind of client.
struct Place {
  int client = -1;  ///< index in the workload; -1: all requests
  ConfigTree objectives;
};

/// The workload as written, with a named one resolved; null if there is none.
ConfigTree workload_of(const PlanSpec& plan) {
  const ConfigTree* workload = plan.space.scenario->find("workload");
  return workload != nullptr && *workload ? resolve_named("workloads", *workload) : nullptr;
}

std::vector<Place> places_of(const PlanSpec& plan) {
  std::vector<Place> out;
  const ConfigTree* own = plan.space.scenario->find("objectives");
  const ConfigTree workload = workload_of(plan);
  if ((own == nullptr || !*own || (*own)->entries.empty()) && workload) own = workload->find("objectives");
  if (own != nullptr && *own) out.push_back({-1, *own});
  const ConfigTree* clients = workload ? workload->find("clients") : nullptr;
  if (clients == nullptr || !*clients) return out;
  for (std::size_t i = 0; i < (*clients)->items.size(); ++i) {
    const ConfigTree* limits = (*clients)->items[i]->find("objectives");
    if (limits != nullptr && *limits) out.push_back({static_cast<int>(i), *limits});
  }
  return out;
}

/// The plan with other objectives at a place.
PlanSpec with_objectives(const PlanSpec& plan, const Place& place, const ConfigTree& objectives) {
  PlanSpec out = plan;
  if (place.client < 0) {
    out.space.scenario = with_value(plan.space.scenario, "objectives", objectives, "plan");
    const ConfigTree whole = workload_of(plan);
    if (!whole || whole->find("objectives") == nullptr) return out;
    auto workload = std::make_shared<ConfigNode>(*whole);  // its own would stand in for an empty map
    std::erase_if(workload->entries, [](const ConfigNode::Entry& e) { return e.key == "objectives"; });
    out.space.scenario = with_value(out.space.scenario, "workload", workload, "plan");
    return out;
  }
  const ConfigTree workload = workload_of(plan);
  std::vector<ConfigTree> clients = (*workload->find("clients"))->items;
  ConfigTree& client = clients[static_cast<std::size_t>(place.client)];
  client = with_value(client, "objectives", objectives, "plan");
  out.space.scenario = with_value(plan.space.scenario, "workload",
                                  with_value(workload, "clients", make_list(std::move(clients)), "plan"), "plan");
  return out;
}

std::string time_text(Seconds t) {
  return t < Seconds(1) ? fmt::format("{:.3g} ms", t.in(kMillisecond)) : fmt::format("{:.3g} s", t.base());
}

std::string raised(const Objective& o, Seconds to) {
  return fmt::format("{} from {} to {}", o.name(), time_text(o.limit), time_text(to));
}

/// The statistic that the deployment meets: the larger of the sampled percentile and the 90 % upper bound. Empty if
/// that is within the limit.
std::optional<Seconds> relaxed(const Objective& o, const PlannedDeployment& found, const PlanSpec& plan) {
  const LogSpread spread = quick_spread(found.candidate.scenario, found.result.metrics, o.statistic());
  const double forecast = observed(o, found.result.metrics).base();
  const double seconds = std::max(upper_confidence(o, found.result.metrics).base(),
                                  plan.confidence > 0 ? forecast * std::exp(spread.high) : 0.0);
  if (seconds <= o.limit.base()) return std::nullopt;
  return Seconds(seconds);
}

/// Relaxes all limits together, if no single one is enough.
void relax_all(const PlanSpec& plan, const std::vector<Objective>& asked, const SearchOptions& options,
               Advice& advice) {
  const std::vector<Place> places = places_of(plan);
  if (places.empty()) return;
  PlanSpec free = plan;
  for (const Place& place : places) free = with_objectives(free, place, make_map());
  const auto found = answer_of(free, options);
  if (!found) return;
  std::string all;
  for (const Objective& o : asked) {
    if (const auto to = relaxed(o, *found, plan)) all += (all.empty() ? "" : " and ") + raised(o, *to);
  }
  if (!all.empty()) advice.relax.push_back(all + ", on " + in_words(*found));
}

/// The objectives with one value replaced.
ConfigTree with_limit(const ConfigTree& objectives, const std::string& key, Seconds limit) {
  auto out = std::make_shared<ConfigNode>(*objectives);
  for (ConfigNode::Entry& e : out->entries) {
    if (e.key == key) e.value = make_scalar(fmt::format("{:.12g} ms", limit.in(kMillisecond)), e.value->location);
  }
  return out;
}

/// Rounds up to two digits.
Seconds rounded_up(Seconds t) {
  const double unit = std::pow(10, std::floor(std::log10(t.base())) - 1);
  return Seconds(std::ceil(t.base() / unit * (1 - 1e-9)) * unit);
}

/// The lowest limit of one objective, within a tenth, for which the search has an answer; `enough` is tried first.
std::optional<std::string> raise_limit(const PlanSpec& plan, const Place& place, const std::string& key,
                                       const Objective& o, Seconds enough, const SearchOptions& options) {
  constexpr int kMostSteps = 8;
  std::optional<std::string> out;
  const auto holds = [&](Seconds limit) {
    const auto found = answer_of(with_objectives(plan, place, with_limit(place.objectives, key, limit)), options);
    if (found) {
      const double usd = found->usd_per_hour();
      out = fmt::format("{}, on {}{}", raised(o, limit), in_words(*found),
                        std::isnan(usd) ? "" : fmt::format(", {:.2f} USD/h", usd));
    }
    return found.has_value();
  };
  Seconds low = o.limit, high = rounded_up(enough);
  if (!holds(high)) return std::nullopt;
  for (int i = 0; i < kMostSteps && high > 1.1 * low; ++i) {
    const Seconds middle = rounded_up(Seconds(std::sqrt(low.base() * high.base())));
    if (middle >= high) break;
    (holds(middle) ? high : low) = middle;
  }
  return out;
}

/// Suggests each limit that would hold with the others unchanged.
void relax_each(const PlanResult& r, const PlanSpec& plan, const SearchOptions& options, Advice& advice) {
  if (plan.goodput > 0 || r.candidates.empty()) return;
  const std::vector<Objective>& asked = r.candidates.front().scenario.objectives;
  for (const Place& place : places_of(plan)) {
    for (const ConfigNode::Entry& entry : place.objectives->entries) {
      auto fewer = std::make_shared<ConfigNode>(*place.objectives);
      std::erase_if(fewer->entries, [&](const ConfigNode::Entry& e) { return e.key == entry.key; });
      const auto found = answer_of(with_objectives(plan, place, fewer), options);
      if (!found) continue;
      for (const Objective& o : asked) {
        const bool written = entry.key == o.statistic() || entry.key == name_of(o.metric);
        if (!written || o.client != place.client) continue;
        const auto enough = relaxed(o, *found, plan);
        const auto line = enough ? raise_limit(plan, place, entry.key, o, *enough, options) : std::nullopt;
        if (line) advice.relax.push_back(*line);
      }
    }
  }
  if (advice.relax.empty() && advice.gpus == 0 && asked.size() > 1) relax_all(plan, asked, options, advice);
}

/// The objective that is nearest to its limit, or exceeds it by most, at the 90 % upper bound.
std::string binding(const PlanResult& r, const PlanSpec& plan) {
  if (!r.nearest) return "";
  const LoadResult& result = r.nearest->result;
  const std::string power = within_power(*r.nearest, plan) ? "" : power_line(*r.nearest, plan);
  if (!power.empty() && result.met && r.nearest->probability.value_or(1) >= plan.confidence - 1e-9) return power;
  const auto ratio = [&](const Verdict& v) {
    const double sampled = v.upper / v.objective.limit;
    if (!r.nearest->probability) return sampled;
    const LogSpread spread = quick_spread(r.nearest->candidate.scenario, result.metrics, v.objective.statistic());
    return std::max(sampled, v.value / v.objective.limit * std::exp(spread.high));
  };
  const Verdict* worst = nullptr;
  for (const Verdict& v : result.verdicts) {
    if (v.objective.client >= 0 && requests_of(v.objective, result.metrics) == 0)
      return v.objective.name() + ", of which no request was completed";
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
  find_larger(r, plan, options, advice);
  find_carried(r, plan, options, advice);
  relax_each(r, plan, options, advice);
  return advice;
}

}  // namespace roofcast
