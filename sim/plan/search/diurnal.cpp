// The day of a changing load: from a profile, or from the requests of a trace.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/config_library.h"
#include "sim/plan/client.h"
#include "sim/plan/search/fleet_plan.h"

namespace roofcast {
namespace {

constexpr double kMostSlices = 10000;
constexpr std::int64_t kLongTrace = 200000;  // requests
constexpr std::size_t kFewestSlices = 6;     // for a slice as long as an hour

std::vector<FleetSlice> slices_of(const WorkloadSpec& day) {
  std::vector<FleetSlice> slices;
  const ArrivalSpec& a = day.arrivals;
  const Seconds each = a.profile_period / static_cast<double>(a.profile.size());
  for (Seconds from(0); from < *day.duration * (1 - 1e-12); from += each) {
    const double level = a.profile[slices.size() % a.profile.size()];
    slices.push_back(
        {.from = from, .to = std::min(from + each, *day.duration), .rate = level * a.rate.base(), .ttft_ms = {}});
  }
  return slices;
}

/// Until the workload's own end, or one mean gap after the last request.
Seconds length_of(const WorkloadSpec& day, const Extent& extent) {
  const Seconds gap = extent.last / static_cast<double>(std::max<std::int64_t>(extent.requests - 1, 1));
  const Seconds recorded = extent.last + gap;
  return day.duration && (!day.clients.empty() || *day.duration < recorded) ? *day.duration : recorded;
}

/// One hour, or less if that gives fewer than six slices.
Seconds suitable_slice(Seconds length) {
  constexpr std::array kMinutes{60, 30, 10, 5, 1};
  for (const int minutes : kMinutes) {
    const Seconds slice(60.0 * minutes);
    if (slice * static_cast<double>(kFewestSlices) <= length) return slice;
  }
  return Seconds(60);
}

/// Counts the requests of each slice.
void count_requests(DiurnalPlan& plan, Seconds slice, std::uint64_t seed) {
  plan.slices.resize(static_cast<std::size_t>(std::ceil(plan.length / slice * (1 - 1e-12))));
  for (std::size_t i = 0; i < plan.slices.size(); ++i) {
    plan.slices[i].from = slice * static_cast<double>(i);
    plan.slices[i].to = std::min(plan.slices[i].from + slice, plan.length);
  }
  const std::unique_ptr<RequestSource> source = make_source(plan.day, seed);
  for (Request request; source->next(request);) {
    FleetSlice& s = plan.slices[std::min(static_cast<std::size_t>(request.arrival / slice), plan.slices.size() - 1)];
    s.rate += 1;
    s.prompt_tokens += request.prompt_tokens;
    s.output_tokens += request.output_tokens;
  }
  for (FleetSlice& s : plan.slices) {
    const double requests = std::max(s.rate, 1.0);
    s.prompt_tokens /= requests, s.output_tokens /= requests;
    s.rate /= (s.to - s.from).base();
    plan.highest = std::max(plan.highest, s.rate);
  }
}

}  // namespace

std::optional<DiurnalPlan> diurnal_plan(const ConfigTree& tree) {
  const ConfigTree* value = tree->find("workload");
  if (value == nullptr || !*value) return std::nullopt;
  const ConfigTree whole = resolve_named("workloads", *value);
  const ConfigTree* arrivals = whole->find("arrivals");
  if (arrivals == nullptr || !*arrivals || (*arrivals)->find("profile") == nullptr) return std::nullopt;
  DiurnalPlan plan;
  ConfigTree ended = whole;
  if (whole->find("duration") == nullptr) {
    const ConfigTree* period = (*arrivals)->find("profile_period");
    ended = with_value(whole, "duration", period != nullptr && *period ? *period : make_scalar("24 h"), "plan");
  }
  plan.day = parse_workload(ConfigReader(ended, "a workload"));
  if (plan.day.arrivals.profile.empty()) return std::nullopt;
  plan.day.requests = plan.day.warmup_requests = 0;
  plan.mean = plan.day.arrivals.rate.base();
  plan.length = *plan.day.duration;
  plan.slices = slices_of(plan.day);
  plan.highest = plan.mean * *std::max_element(plan.day.arrivals.profile.begin(), plan.day.arrivals.profile.end());
  ConfigTree peak = with_value(whole, "arrivals.rate", make_scalar(fmt::format("{} /s", plan.highest)), "plan");
  for (const char* key : {"arrivals.profile", "arrivals.profile_period"})
    peak = with_value(peak, key, std::make_shared<ConfigNode>(), "plan");
  plan.peak = with_value(tree, "workload", peak, "plan");
  return plan;
}

std::optional<DiurnalPlan> recorded_day(const PlanSpec& plan) {
  const ConfigTree& scenario = plan.space.scenario;
  const ConfigTree* value = scenario->find("workload");
  if (value == nullptr || !*value || plan.disaggregated || plan.goal == PlanGoal::kThroughput) return std::nullopt;
  DiurnalPlan out{
      .peak = nullptr,
      .day = parse_workload(ConfigReader(expand_client(resolve_named("workloads", *value), {}), "a workload")),
      .recorded = true,
      .slices = {}};
  if (load_kind(out.day) != LoadKind::kPace) return std::nullopt;
  const ConfigTree* seed_value = scenario->find("seed");
  const std::uint64_t seed =
      seed_value != nullptr ? static_cast<std::uint64_t>(ConfigReader(scenario).integer("seed", 0, {0, 9e15})) : 0;
  const Extent extent = extent_of(out.day, seed);
  out.length = length_of(out.day, extent);
  out.mean = static_cast<double>(extent.requests) / std::max(out.length.base(), 1e-9);
  out.day.warmup_requests = 0;
  const Seconds slice = plan.slice > Seconds(0) ? plan.slice : suitable_slice(out.length);
  if (out.length <= slice) return std::nullopt;
  if (out.length / slice > kMostSlices) {
    throw ConfigError(scenario->location,
                      fmt::format("{:.3g} slices of {} s are too many, {:.0f} is the most: give the "
                                  "search a longer 'slice'",
                                  out.length / slice, slice.base(), kMostSlices));
  }
  count_requests(out, slice, seed);
  out.of_busiest = extent.requests > kLongTrace;
  return out;
}

PlanSpec sought_plan(const PlanSpec& plan, const DiurnalPlan& day) {
  if (!day.of_busiest) return plan;
  const auto tokens = [](const FleetSlice& s) { return s.rate * (s.prompt_tokens + s.output_tokens); };
  const FleetSlice& busiest =
      *std::max_element(day.slices.begin(), day.slices.end(),
                        [&](const FleetSlice& a, const FleetSlice& b) { return tokens(a) < tokens(b); });
  PlanSpec out = plan;
  const auto seconds = [](Seconds time) { return make_scalar(fmt::format("{} s", time.base())); };
  ConfigTree workload = resolve_named("workloads", *plan.space.scenario->find("workload"));
  workload = with_value(workload, "start", seconds(day.day.start + busiest.from), "plan");
  workload = with_value(workload, "duration", seconds(busiest.to - busiest.from), "plan");
  workload = with_value(workload, "requests", std::make_shared<ConfigNode>(), "plan");
  out.space.scenario = with_value(plan.space.scenario, "workload", workload, "plan");
  return out;
}

}  // namespace roofcast
