#include "sim/plan/search/services.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/plan/search/condition.h"
#include "sim/plan/search/risk.h"
#include "sim/plan/search/search_memory.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

constexpr int kAnyNumber = 1 << 24;  // of GPUs: no limit

void check_kind(const Service& service, const PlanResult& result) {
  if (result.kind == LoadKind::kRate || result.kind == LoadKind::kUsers) return;
  throw ConfigError(service.plan->location,
                    fmt::format("'{}': several services need steady loads, a rate or users; a trace, "
                                "clients or a batch job are planned by themselves",
                                service.name));
}

// --- options ---------------------------------------------------------------------------------------------------------

/// A row of a search as an option for a service.
struct Row {
  std::size_t source = 0, row = 0;
  FleetOption option;                ///< at the lowest price per GPU, for comparing options
  std::vector<FleetOption> rentals;  ///< at each offer worth considering
};

/// A fleet that the search does not allow to grow to the required confidence.
struct UnsureFleet {
  std::size_t source = 0;
  PlannedDeployment fleet;
};

/// One service's own answer, and its answers with a single kind of GPU each.
struct Sources {
  std::vector<PlanAnswer> answers;
  std::vector<Row> rows;
  std::vector<UnsureFleet> unsure;  ///< removed from the rows
  double usd_alone = 0;             ///< per hour, of the service's own answer; 0 without one
  bool at_limit = false;            ///< none reaches the required confidence: the only row is the surest of `unsure`
};

bool sure(const PlanResult& result, const PlannedDeployment& p) { return result.draws == 0 || p.probability; }

std::size_t pool_of(std::vector<PoolUse>& pools, const Deployment& d, const PriceQuote* offer) {
  const PriceQuote quote = offer != nullptr ? *offer : PriceQuote{.tier = "none"};
  const GpuPool pool{d.gpu.name, offer != nullptr ? quote.per_gpu.value : std::nan(""), quote.host};
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const PoolUse& known = pools[i];
    const bool same_price = known.pool.usd_per_gpu_hour == pool.usd_per_gpu_hour ||
                            (std::isnan(known.pool.usd_per_gpu_hour) && std::isnan(pool.usd_per_gpu_hour));
    if (known.pool.gpu == pool.gpu && known.pool.host == pool.host && same_price &&
        known.quote.provider == quote.provider && known.quote.tier == quote.tier && known.quote.region == quote.region)
      return i;
  }
  pools.push_back({.pool = pool, .quote = quote, .available = std::nullopt});
  return pools.size() - 1;
}

FleetOption option_at(const PlannedDeployment& p, const PriceQuote* offer, const PriceQuote* prefill_offer,
                      std::vector<PoolUse>& pools) {
  const Fleet paid = p.paid();
  FleetOption out{
      .parts = {{pool_of(pools, *p.candidate.scenario.deployment, offer), p.candidate.gpus(), paid.replicas}},
      .watts = p.power_bound().value};
  if (p.candidate.disaggregated())
    out.parts.push_back(
        {pool_of(pools, p.candidate.prefill(), prefill_offer), p.candidate.prefill_gpus(), paid.prefill_replicas});
  return out;
}
FleetOption option_of(const PlannedDeployment& p, std::vector<PoolUse>& pools) {
  const auto first = [](const Deployment& d) { return d.offers.empty() ? nullptr : &d.offers.front(); };
  return option_at(p, first(*p.candidate.scenario.deployment),
                   p.candidate.disaggregated() ? first(p.candidate.prefill()) : nullptr, pools);
}
std::vector<FleetOption> rentals_of(const PlannedDeployment& p, std::vector<PoolUse>& pools) {
  const Fleet paid = p.paid();
  std::vector<FleetOption> out;
  for (const Bill& bill : bills_worth_sharing(*p.candidate.scenario.deployment,
                                              p.candidate.disaggregated() ? &p.candidate.prefill() : nullptr,
                                              {paid.replicas, paid.prefill_replicas}))
    out.push_back(option_at(p, bill.decode.quote, bill.prefill.quote, pools));
  return out;
}

/// Whether `a` needs no more than `b` of any resource.
bool covers(const FleetOption& a, const FleetOption& b, bool watts) {
  if (a.parts.size() != b.parts.size() || (watts && a.watts > b.watts)) return false;
  for (std::size_t i = 0; i < a.parts.size(); ++i) {
    const PooledReplicas &x = a.parts[i], &y = b.parts[i];
    if (x.pool != y.pool || x.gpus != y.gpus || x.replicas > y.replicas) return false;
  }
  return true;
}

/// Removes a row from the ranking of an answer.
void drop_row(Sources& sources, std::size_t source, std::size_t row) {
  std::vector<PlannedDeployment>& ranked = sources.answers[source].result.ranked;
  ranked.erase(ranked.begin() + static_cast<std::ptrdiff_t>(row));
  for (Row& r : sources.rows) r.row -= r.source == source && r.row > row ? 1 : 0;
}

/// Adds the confident rows of an answer. Rows beyond the first few are judged now, unless a known fleet needs no more
/// than their forecast does. Rows that fail leave the ranking.
void add_rows(Sources& sources, std::size_t source, std::vector<PoolUse>& pools, bool watts) {
  PlanAnswer& answer = sources.answers[source];
  PlanResult& result = answer.result;
  const auto known = [&](const FleetOption& option) {
    return std::any_of(sources.rows.begin(), sources.rows.end(),
                       [&](const Row& r) { return covers(r.option, option, watts); });
  };
  PricerPool& pricers = *result.pricers;
  for (const bool judged : {true, false}) {
    for (std::size_t i = 0; i < result.ranked.size(); ++i) {
      PlannedDeployment& p = result.ranked[i];
      if (sure(result, p) != judged) continue;
      if (known(option_of(p, pools))) continue;
      if (!judged) {
        result.forecasts.push_back(p);
        if (!make_sure(p, answer.plan, draws_of(answer.plan, p.candidate.scenario), pricers)) {
          result.forecasts.pop_back();
          drop_row(sources, source, i--);
          continue;
        }
        if (known(option_of(p, pools))) continue;
      }
      sources.rows.push_back({source, i, option_of(p, pools), rentals_of(p, pools)});
    }
  }
}

/// Restores the surest of the removed fleets as the only row.
void put_surest_back(Sources& sources, std::vector<PoolUse>& pools) {
  std::vector<UnsureFleet>& unsure = sources.unsure;
  for (UnsureFleet& u : unsure) {
    PlanAnswer& answer = sources.answers[u.source];
    if (!u.fleet.in_all_draws) simulate_all_draws(u.fleet, answer.plan, *answer.result.pricers);
  }
  const auto surest = std::max_element(unsure.begin(), unsure.end(), [](const auto& a, const auto& b) {
    return *a.fleet.probability < *b.fleet.probability;
  });
  PlanResult& result = sources.answers[surest->source].result;
  result.ranked.push_back(surest->fleet);
  result.at_limit = sources.at_limit = true;
  sources.rows = {
      {surest->source, result.ranked.size() - 1, option_of(surest->fleet, pools), rentals_of(surest->fleet, pools)}};
}

/// Simulates the fleet of a row in all draws and adds what it needs to reach the confidence. If that is impossible, the
/// row is removed; the surest removed one returns if no other row is left. Returns whether nothing changed.
bool size_option_by_draws(Sources& sources, std::size_t at, std::vector<PoolUse>& pools, bool watts) {
  if (sources.at_limit) return true;
  const Row row = sources.rows[at];
  PlanAnswer& answer = sources.answers[row.source];
  PlannedDeployment& p = answer.result.ranked[row.row];
  const Fleet before = p.fleet();
  const bool sure = grow_until_sure(p, answer.plan, *answer.result.pricers);
  if (sure && p.fleet().replicas == before.replicas && p.fleet().prefill_replicas == before.prefill_replicas)
    return true;
  if (sure) {
    sources.rows[at].option = option_of(p, pools), sources.rows[at].rentals = rentals_of(p, pools);
  } else {
    sources.unsure.push_back({row.source, std::move(p)});
    sources.rows.erase(sources.rows.begin() + static_cast<std::ptrdiff_t>(at));
    drop_row(sources, row.source, row.row);
  }
  // Options that the fleet covered before may now be better than it.
  for (std::size_t i = 0; i < sources.answers.size(); ++i) add_rows(sources, i, pools, watts);
  if (sources.rows.empty()) put_surest_back(sources, pools);
  return false;
}

/// The types of GPU of the candidates, in the order of the plan.
std::vector<std::string> kinds_of(const SearchMemory& memory) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& gpu) {
    if (std::find(out.begin(), out.end(), gpu) == out.end()) out.push_back(gpu);
  };
  for (const Candidate& c : memory.candidates->kept) {
    if (c.disaggregated()) add(c.prefill().gpu.name);
    add(c.scenario.deployment->gpu.name);
  }
  return out;
}

/// The service's own plan, and its plan with each type of GPU alone, because other services may take the type that it
/// prefers. They share candidates and simulations.
Sources sources_of(const Service& service, const SearchOptions& options) {
  Sources out;
  SearchOptions first = options;
  first.memory = std::make_shared<SearchMemory>();
  out.answers.push_back(answer_plan(service.plan, first, PlanDetail::kRanking));
  PlanAnswer& own = out.answers.front();
  check_kind(service, own.result);
  size_winner_by_draws(own.result, own.plan, *own.result.pricers);  // the answer for the service alone
  const std::vector<PlannedDeployment>& alone = own.result.ranked;
  if (!alone.empty()) out.usd_alone = alone.front().usd_per_hour();
  const std::vector<std::string> kinds = kinds_of(*first.memory);
  if (alone.empty() || kinds.size() < 2) return out;
  SearchOptions one = first;
  one.advise = false;
  one.tell = {};  // said once
  for (const std::string& gpu : kinds) {
    one.only_gpu = gpu;
    PlanAnswer answer = answer_plan(service.plan, one, PlanDetail::kRanking);
    if (!answer.result.ranked.empty()) out.answers.push_back(std::move(answer));
  }
  return out;
}

// --- the joint plan --------------------------------------------------------------------------------------------------

std::vector<GpuPool> bare(const std::vector<PoolUse>& pools) {
  std::vector<GpuPool> out;
  for (const PoolUse& use : pools) out.push_back(use.pool);
  return out;
}

Cheapest weighed_by(PlanGoal goal) { return goal == PlanGoal::kGpus ? Cheapest::kGpus : Cheapest::kUsd; }

std::string gpus_word(int gpus) { return fmt::format("max_gpus ({})", gpus); }
std::string cost_word(double usd_per_hour) { return fmt::format("max_cost ({:.2f} USD/h)", usd_per_hour); }
std::string power_word(double watts) { return fmt::format("max_power ({:.6g} kW)", watts / 1e3); }
std::string stock_word(const std::string& gpu, int count) { return fmt::format("the {} x {} available", count, gpu); }

struct LimitWord {
  std::string what;
  SharedLimits without;
  bool all = false;
};

/// Each limit alone and, if there are several, all together.
std::vector<LimitWord> each_lifted(const SharedLimits& limits) {
  std::vector<LimitWord> out;
  const auto add = [&](std::string what, auto lift) {
    out.push_back({std::move(what), limits});
    lift(out.back().without);
  };
  add(gpus_word(limits.max_gpus), [&](SharedLimits& l) { l.max_gpus = kAnyNumber; });
  if (limits.max_usd_per_hour)
    add(cost_word(*limits.max_usd_per_hour), [](SharedLimits& l) { l.max_usd_per_hour.reset(); });
  if (limits.max_watts) add(power_word(*limits.max_watts), [](SharedLimits& l) { l.max_watts.reset(); });
  for (const auto& kind : limits.available)
    add(stock_word(kind.first, kind.second), [&](SharedLimits& l) { std::erase(l.available, kind); });
  if (out.size() > 1) {
    add("any of the limits", [&](SharedLimits& l) { l = {}, l.max_gpus = kAnyNumber; });
    out.back().all = true;
  }
  return out;
}

using Options = std::vector<std::vector<FleetOption>>;

/// Describes what is rented, what is shared, and each service's part of the bill.
void describe_joint(ServicesAnswer& out, std::vector<PoolUse>& pools, const std::vector<std::size_t>& of,
                    const std::vector<FleetOption>& fleets) {
  for (const Instance& instance : packed(bare(pools), fleets)) {
    PoolUse& use = pools[instance.pool];
    int used = 0;
    for (const auto& [service, gpus] : instance.gpus) used += gpus;
    use.gpus += used, use.paid_gpus += use.pool.host;
    for (const auto& [service, gpus] : instance.gpus)
      out.services[of[service]].usd_per_hour += use.pool.usd_per_gpu_hour * use.pool.host * gpus / used;
    if (instance.gpus.size() < 2) continue;
    Instance shared = instance;
    for (auto& [service, gpus] : shared.gpus) service = of[service];
    for (PackedReplica& replica : shared.replicas) replica.service = of[replica.service];
    out.shared.push_back(std::move(shared));
  }
  for (PoolUse& use : pools) {
    for (const auto& [gpu, count] : out.spec.limits.available) {
      if (gpu == use.pool.gpu) use.available = count;
    }
  }
  std::vector<std::size_t> renumbered(pools.size());
  for (std::size_t i = 0; i < pools.size(); ++i) {
    renumbered[i] = out.pools.size();
    if (pools[i].gpus > 0) out.pools.push_back(pools[i]);
  }
  for (Instance& instance : out.shared) instance.pool = renumbered[instance.pool];
  for (const Instance& instance : out.shared) {
    for (const auto& [service, gpus] : instance.gpus)
      out.services[service].answer.share = out.services[service].usd_per_hour;
  }
}

/// These fleets at the offers with the lowest total cost.
std::vector<FleetOption> cheapest_rentals(const std::vector<PoolUse>& pools, const Options& choices) {
  const auto found = cheapest_assignment(bare(pools), choices, {.max_gpus = kAnyNumber}).best;
  std::vector<FleetOption> out;
  for (std::size_t i = 0; i < choices.size(); ++i) out.push_back(choices[i][found ? found->chosen[i] : 0]);
  return out;
}

/// Sums each service's fleet month by month.
void add_growth(ServicesAnswer& out) {
  std::vector<int> months{0};
  for (ServiceAnswer& s : out.services) {
    PlanAnswer& a = s.answer;
    if (a.result.ranked.empty()) continue;
    PlanResult first;  // the chosen row, even if another becomes cheaper later
    first.pricers = a.result.pricers;
    first.kind = a.result.kind;
    first.ranked = {a.result.ranked.front()};
    a.growth = growth_paths(a.plan, first);
    for (const GrowthPath& path : a.growth) {
      for (const GrowthStage& stage : path.stages) months.push_back(stage.month);
      if (path.outgrown) months.push_back(*path.outgrown);
    }
  }
  std::sort(months.begin(), months.end());
  months.erase(std::unique(months.begin(), months.end()), months.end());
  const auto grows = [](const ServiceAnswer& s) { return !s.answer.growth.empty(); };
  if (std::none_of(out.services.begin(), out.services.end(), grows)) return;
  for (const int month : months) {
    std::vector<PoolUse> pools;
    Options choices;
    ServicesStage stage;
    stage.month = month;
    double watts = 0;
    for (const ServiceAnswer& s : out.services) {
      if (s.answer.result.ranked.empty()) continue;
      PlannedDeployment p = s.answer.result.ranked.front();
      const double now = p.gpus();
      if (grows(s)) {
        const GrowthPath& path = s.answer.growth.front();
        for (const GrowthStage& g : path.stages) {
          if (g.month <= month)
            p.replicas = g.fleet.replicas, p.prefill_replicas = g.fleet.prefill_replicas, p.spare = g.spare;
        }
        if (path.outgrown && *path.outgrown <= month) stage.beyond.push_back(fmt::format("'{}' by itself", s.name));
      }
      choices.push_back(rentals_of(p, pools));
      watts += s.answer.result.ranked.front().power_bound().value * p.gpus() / now;
    }
    for (const Instance& instance : packed(bare(pools), cheapest_rentals(pools, choices))) {
      stage.paid_gpus += pools[instance.pool].pool.host;
      stage.usd_per_hour += pools[instance.pool].pool.host * pools[instance.pool].pool.usd_per_gpu_hour;
      for (const auto& [service, gpus] : instance.gpus) pools[instance.pool].gpus += gpus;
    }
    for (const PoolUse& use : pools) stage.gpus += use.gpus;
    const SharedLimits& limits = out.spec.limits;
    if (stage.gpus > limits.max_gpus) stage.beyond.push_back(gpus_word(limits.max_gpus));
    if (limits.max_usd_per_hour && stage.usd_per_hour > *limits.max_usd_per_hour * (1 + 1e-9))
      stage.beyond.push_back(cost_word(*limits.max_usd_per_hour));
    if (limits.max_watts && watts > *limits.max_watts * (1 + 1e-9))
      stage.beyond.push_back(power_word(*limits.max_watts));
    for (const auto& [gpu, count] : limits.available) {
      int used = 0;
      for (const PoolUse& use : pools) used += use.pool.gpu == gpu ? use.gpus : 0;
      if (used > count) stage.beyond.push_back(stock_word(gpu, count));
    }
    out.growth.push_back(std::move(stage));
    if (!out.growth.back().beyond.empty()) break;
  }
}

/// Plans a single service as usual.
void answer_alone(ServicesAnswer& out, const SearchOptions& options, PlanDetail detail) {
  const Service& service = out.spec.services.front();
  ServiceAnswer only{.name = service.name, .answer = answer_plan(service.plan, options, detail), .options = 1};
  const std::vector<PlannedDeployment>& ranked = only.answer.result.ranked;
  std::vector<PoolUse> pools;
  std::vector<FleetOption> fleets;
  if (!ranked.empty()) {
    only.usd_alone = ranked.front().usd_per_hour();
    const Bill bill = ranked.front().bill();
    fleets.push_back(option_at(ranked.front(), bill.decode.quote, bill.prefill.quote, pools));
    out.joint = Assignment{.chosen = {0},
                           .gpus = ranked.front().gpus(),
                           .paid_gpus = 0,
                           .usd_per_hour = only.usd_alone,
                           .watts = fleets.front().watts};
  }
  out.services.push_back(std::move(only));
  describe_joint(out, pools, {0}, fleets);
  for (const PoolUse& use : out.pools) out.joint->paid_gpus += use.paid_gpus;
}

/// The candidate fleets of each service.
struct Choices {
  std::vector<std::size_t> of;  ///< services that have a fleet
  Options options;
  std::vector<std::vector<std::size_t>> row_of;  ///< by option: of Sources::rows
};

Choices choices_of(const std::vector<Sources>& sources) {
  Choices out;
  for (std::size_t s = 0; s < sources.size(); ++s) {
    const std::vector<Row>& rows = sources[s].rows;
    if (rows.empty()) continue;
    out.of.push_back(s);
    std::vector<FleetOption>& options = out.options.emplace_back();
    std::vector<std::size_t>& from = out.row_of.emplace_back();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      options.insert(options.end(), rows[i].rentals.begin(), rows[i].rentals.end());
      from.insert(from.end(), rows[i].rentals.size(), i);
    }
  }
  return out;
}

/// Simulates all chosen fleets in all draws; returns whether none changed.
bool size_chosen_by_draws(std::vector<Sources>& sources, const Choices& choices, const Assignment& assignment,
                          std::vector<PoolUse>& pools, bool watts) {
  bool same = true;
  for (std::size_t k = 0; k < choices.of.size(); ++k)
    same &= size_option_by_draws(sources[choices.of[k]], choices.row_of[k][assignment.chosen[k]], pools, watts);
  return same;
}

/// Finds the cost of each limit, with fleets simulated in all draws. False if one of these changed: then the joint plan
/// must be computed again.
bool find_binding(ServicesAnswer& out, std::vector<Sources>& sources, const Choices& choices,
                  std::vector<PoolUse>& pools, bool watts) {
  const Cheapest by = weighed_by(out.spec.goal);
  out.binds.clear();
  out.binds_proven = true;
  for (const LimitWord& limit : each_lifted(out.spec.limits)) {
    if (limit.all && !out.binds.empty()) break;
    const auto [free, decided] = cheapest_assignment(bare(pools), choices.options, limit.without, by);
    out.binds_proven = out.binds_proven && decided && (!free || free->proven);
    if (!free) continue;
    const bool less = !out.joint || (by == Cheapest::kGpus ? free->gpus < out.joint->gpus
                                                           : free->usd_per_hour < out.joint->usd_per_hour - 1e-6);
    if (!less) continue;
    if (!size_chosen_by_draws(sources, choices, *free, pools, watts)) return false;
    out.binds.push_back({limit.what, free->gpus, free->usd_per_hour, limit.all});
  }
  return true;
}

}  // namespace

bool ServicesAnswer::complete() const { return joint && joint->chosen.size() == services.size(); }

Watts ServicesAnswer::power() const {
  Watts sum{0};
  for (const ServiceAnswer& s : services) {
    if (!s.answer.result.ranked.empty()) sum.value += s.answer.result.ranked.front().power().value;
  }
  return sum;
}
Watts ServicesAnswer::power_bound() const {
  Watts sum{0};
  for (const ServiceAnswer& s : services) {
    if (!s.answer.result.ranked.empty()) sum.value += s.answer.result.ranked.front().power_bound().value;
  }
  return sum;
}

ServicesAnswer answer_services(const ConfigTree& plan, const SearchOptions& options, PlanDetail detail) {
  ServicesAnswer out;
  out.spec = parse_services(plan);
  if (out.spec.services.size() == 1) {
    answer_alone(out, options, detail);
    return out;
  }
  std::vector<PoolUse> pools;
  std::vector<Sources> sources;
  const bool watts = out.spec.limits.max_watts.has_value();
  for (const Service& service : out.spec.services) {
    Sources& known = sources.emplace_back(sources_of(service, options));
    for (std::size_t i = 0; i < known.answers.size(); ++i) add_rows(known, i, pools, watts);
  }
  Choices choices = choices_of(sources);
  for (bool settled = false; !settled && !choices.of.empty(); choices = choices_of(sources)) {
    const AssignmentOutcome found =
        cheapest_assignment(bare(pools), choices.options, out.spec.limits, weighed_by(out.spec.goal));
    out.joint = found.best, out.decided = found.decided;
    settled = (!out.joint || size_chosen_by_draws(sources, choices, *out.joint, pools, watts)) &&
              find_binding(out, sources, choices, pools, watts);
  }
  const std::vector<std::size_t>& of = choices.of;
  std::vector<FleetOption> fleets;
  for (std::size_t s = 0, k = 0; s < sources.size(); ++s) {
    Sources& known = sources[s];
    ServiceAnswer& service = out.services.emplace_back(ServiceAnswer{.name = out.spec.services[s].name, .answer = {}});
    service.options = known.rows.size();
    service.usd_alone = known.usd_alone;
    const bool chosen = out.joint && k < of.size() && of[k] == s;
    Row row;
    if (chosen) {
      const std::size_t choice = out.joint->chosen[k];
      fleets.push_back(choices.options[k][choice]);
      row = known.rows[choices.row_of[k++][choice]];
    }
    service.answer = std::move(known.answers[row.source]);
    service.answer.plan.max_cost = {},
    service.answer.plan.max_power = {};  // limits of all services, which the joint answer states
    if (!chosen) continue;
    std::vector<PlannedDeployment>& ranked = service.answer.result.ranked;
    put_first(service.answer.result, row.row, service.answer.plan);
    std::stable_sort(ranked.begin() + 1, ranked.end(),
                     [&](const auto& a, const auto& b) { return better(a, b, out.spec.goal); });
    if (detail == PlanDetail::kAll) add_details(out.spec.services[s].plan, service.answer);
  }
  if (!out.joint) return out;
  describe_joint(out, pools, of, fleets);
  if (detail == PlanDetail::kAll) add_growth(out);
  return out;
}

}  // namespace roofcast
