#include "sim/plan/search/owned.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/config_library.h"
#include "hw/gpu_spec.h"
#include "sim/plan/prices.h"
#include "sim/plan/search/fleet_plan.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

constexpr const char* kFile = "plan";
/// Keys that apply to the whole fleet, not to the share of the owned GPUs.
constexpr std::array kOfTheFleet{"growth", "max_cost", "max_power", "spare_replicas", "availability", "zones"};
const ConfigTree kNone = std::make_shared<ConfigNode>();

/// The plan without `search.owned` and these keys of its search.
ConfigTree without_owned(const ConfigTree& plan) {
  auto search = std::make_shared<ConfigNode>(**plan->find("search"));
  std::erase_if(search->entries, [](const ConfigNode::Entry& entry) { return entry.key == "owned"; });
  return with_value(plan, "search", search, kFile);
}

/// Default cost of an owned GPU: its electricity, because it is already paid for.
ConfigTree price_of_power(const ConfigTree& gpu, const ConfigTree& search) {
  const GpuSpec spec = parse_gpu_spec(ConfigReader(resolve_named("hardware", gpu), "a GPU"));
  const ConfigTree* overhead = search->find("power_usage_effectiveness");
  return make_map({{"tier", {}, make_scalar("owned")},
                   {"power", {}, make_scalar(fmt::format("{} W", spec.board_power.value))},
                   {"power_usage_effectiveness", {}, overhead != nullptr ? *overhead : make_scalar("1")},
                   {"usd_per_kwh", {}, make_scalar(fmt::format("{}", usual_usd_per_kwh()))},
                   {"host", {}, make_scalar("1")}});
}

/// A search over the configurations of the owned GPUs.
ConfigTree search_of_owned(const ConfigTree& plan, ConfigReader owned) {
  const std::vector<ConfigTree> gpus = owned.list("gpus");
  if (gpus.empty())
    owned.fail("gpus", "'gpus' of 'owned' must list the GPUs that you own, such as [{name: a100-sxm, available: 8}]");
  double count = 0;
  for (const ConfigTree& gpu : gpus) {
    if (gpu->kind != ConfigNode::Kind::kMap || gpu->find("available") == nullptr)
      throw ConfigError(gpu->location, "owned GPUs need their number: {name: a100-sxm, available: 8}");
    count += static_cast<double>(ConfigReader(gpu, "a GPU").integer("available", {1, 1e6}));
  }
  if (gpus.size() > 1)
    throw ConfigError(gpus[1]->location,
                      "owned GPUs must be of one kind; plan each kind by itself, and the rest after it");
  auto gpu = std::make_shared<ConfigNode>(*gpus.front());
  std::erase_if(gpu->entries, [](const ConfigNode::Entry& entry) { return entry.key == "available"; });
  ConfigTree price = owned.tree("price");
  const bool figures = price && (price->find("usd_per_gpu") != nullptr || price->find("usd_per_kwh") != nullptr);
  if (figures && price->find("host") == nullptr)  // already bought: priced one GPU at a time
    price = with_value(price, "host", make_scalar("1"), kFile);
  if (price && gpu->find("price") != nullptr)
    throw ConfigError(price->location, "owned GPUs have a 'price' already: leave out one of the two");
  ConfigTree out = plan;
  if (gpu->find("price") == nullptr)
    out = with_value(out, "price", price ? price : price_of_power(gpu, *plan->find("search")), kFile);
  for (const char* key : kOfTheFleet) out = with_value(out, std::string("search.") + key, kNone, kFile);
  for (const char* key : {"prefill", "decode"}) out = with_value(out, std::string("search.") + key, kNone, kFile);
  for (const char* key : {"tp", "pp", "dcp", "ep", "attention_dp", "expert_overlap", "precision", "weights", "kv_cache",
                          "max_num_seqs", "max_num_batched_tokens", "speculation"}) {
    if (owned.has(key))
      out = with_value(out, std::string("search.") + key, make_list(owned.list(key), owned.location()), kFile);
  }
  owned.finish();
  out = with_value(out, "search.gpus", make_list(gpus, owned.location()), kFile);
  return with_value(out, "search.max_gpus", make_scalar(fmt::format("{:.0f}", count)), kFile);
}

/// Of the judged rows, the one that carries the most on all owned GPUs.
const PlannedDeployment& strongest(const PlanResult& result) {
  return *std::max_element(result.ranked.begin(), result.ranked.end(), [&](const auto& a, const auto& b) {
    if (result.draws > 0 && a.probability.has_value() != b.probability.has_value()) return b.probability.has_value();
    return a.load < b.load;
  });
}

/// Limits of the whole fleet, minus what the owned GPUs use.
ConfigTree with_limits_left(ConfigTree rest, const PlanSpec& asked, const OwnedShare& share,
                            const SourceLocation& location) {
  const auto left = [&](const char* key, double limit, double taken, const char* unit) {
    if (limit <= 0) return;
    if (taken >= limit) throw ConfigError(location, fmt::format("the owned GPUs take all of '{}'", key));
    rest =
        with_value(rest, std::string("search.") + key, make_scalar(fmt::format("{} {}", limit - taken, unit)), kFile);
  };
  left("max_cost", asked.max_cost.value, share.planned.usd_per_hour(), "USD/h");
  left("max_power", asked.max_power.value, share.planned.power_bound().value, "W");
  return rest;
}

}  // namespace

std::optional<OwnedPlan> plan_owned(const ConfigTree& plan, const SearchOptions& options) {
  const ConfigTree* search = plan->kind == ConfigNode::Kind::kMap ? plan->find("search") : nullptr;
  const ConfigTree* owned =
      search != nullptr && *search && (*search)->kind == ConfigNode::Kind::kMap ? (*search)->find("owned") : nullptr;
  if (owned == nullptr || !*owned) return std::nullopt;
  ConfigTree rest = without_owned(plan);
  const PlanSpec asked = parse_plan(rest);
  if (asked.goal == PlanGoal::kThroughput)
    throw ConfigError((*owned)->location,
                      "'owned' takes its share of a load that is offered; 'goal: throughput' offers none");
  if (diurnal_plan(rest))
    throw ConfigError((*owned)->location,
                      "'owned' takes its share of a steady load; leave out the arrivals' 'profile'");
  const ConfigTree alone = search_of_owned(rest, ConfigReader(*owned, "owned GPUs"));
  const PlanResult result =
      search_capacity(parse_plan(with_value(alone, "search.goal", make_scalar("throughput"), kFile)), options);
  if (result.kind != LoadKind::kRate && result.kind != LoadKind::kUsers)
    throw ConfigError((*owned)->location,
                      "'owned' takes its share of a rate or of users; a trace, clients or a batch job "
                      "cannot be split");
  if (result.ranked.empty())
    throw ConfigError((*owned)->location, fmt::format("the owned GPUs can serve no load within the objectives{}",
                                                      result.reason.empty() ? "" : ": " + result.reason));
  OwnedShare share{.planned = strongest(result), .offered = 0};
  share.offered = offered_load(*share.planned.candidate.scenario.workload);
  const double remains = share.offered - share.planned.load;
  const std::string cost = bill_line(*share.planned.candidate.scenario.deployment, nullptr, share.planned.bill());
  if (remains <= 0) {  // then they are planned like any others
    ConfigTree all = alone;
    for (const char* key : kOfTheFleet) {
      const ConfigTree* value = (*search)->find(key);
      if (value != nullptr && *value) all = with_value(all, std::string("search.") + key, *value, kFile);
    }
    return OwnedPlan{.share = std::nullopt, .rest = all, .note = "the owned GPUs serve the whole load"};
  }
  const bool users = result.kind == LoadKind::kUsers;
  rest = with_limits_left(std::move(rest), asked, share, (*owned)->location);
  rest = with_value(rest, "workload", resolve_named("workloads", *rest->find("workload")), kFile);
  const ConfigTree& load = *rest->find("workload");
  const std::string under = load->find("client") != nullptr ? "workload." : "workload.arrivals.";
  rest =
      with_value(rest, under + (users ? "concurrency" : "rate"),
                 make_scalar(users ? fmt::format("{:.0f}", std::ceil(remains)) : fmt::format("{} /s", remains)), kFile);
  if (asked.goal == PlanGoal::kCost) {  // shares are of whole replicas: they need not save one
    const PlanResult all = search_capacity(asked, options), more = search_capacity(parse_plan(rest), options);
    const double with = more.ranked.empty() ? std::numeric_limits<double>::infinity()
                                            : share.planned.usd_per_hour() + more.ranked.front().usd_per_hour();
    if (!all.ranked.empty() && with > all.ranked.front().usd_per_hour() * (1 + 1e-9)) {
      const std::string why = more.ranked.empty()
                                  ? "the search has no answer for the remaining load, but one for the whole"
                                  : fmt::format("at {} the whole would cost {:.2f} USD/h", cost, with);
      return OwnedPlan{.share = std::nullopt, .rest = without_owned(plan), .note = "the owned GPUs stay idle: " + why};
    }
  }
  return OwnedPlan{.share = std::move(share), .rest = std::move(rest)};
}

}  // namespace roofcast
