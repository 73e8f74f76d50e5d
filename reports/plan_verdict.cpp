#include "reports/plan_verdict.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/text.h"
#include "reports/fleet_plan_report.h"
#include "reports/launch_command.h"
#include "reports/plan_report.h"
#include "reports/provenance.h"
#include "reports/table.h"
#include "sim/plan/prices.h"
#include "sim/plan/search/spares.h"
#include "sim/plan/serving_intervals.h"
#include "sim/plan/system_spread.h"

namespace roofcast {
namespace {

constexpr std::size_t kShown = 12;
constexpr std::size_t kFrontierShown = 16;

std::string layout_of(const Sharding& s) {
  std::string out = fmt::format("tp {}", s.tp);
  if (s.pp > 1) out += fmt::format(" pp {}", s.pp);
  if (s.attention_dp > 1) out += fmt::format(" adp {}", s.attention_dp);
  if (s.ep > 1) out += fmt::format(" ep {}", s.ep);
  return out;
}

std::string with_speculation(const Candidate& c, std::string layout) {
  const SpeculationSpec& s = c.scenario.serving.speculation;
  if (!s.active()) return layout;
  return layout + fmt::format(" {} k {}", name_of(s.method), s.num_speculative_tokens);
}

std::string count_of(int replicas, int spare) {
  return spare > 0 ? fmt::format("{}+{}", replicas, spare) : std::to_string(replicas);
}

/// "4 x tp 2", "3 x tp 2 > 1+1 x tp 4".
std::string fleet_layout(const PlannedDeployment& p) {
  const Candidate& c = p.candidate;
  const std::string decode = count_of(p.replicas, p.spare) + " x " + layout_of(c.scenario.deployment->sharding);
  if (!c.disaggregated()) return with_speculation(c, decode);
  return with_speculation(
      c, count_of(p.prefill_replicas, p.spare) + " x " + layout_of(c.prefill().sharding) + " > " + decode);
}

/// More than the replicas take where instances are rented whole.
double paid_gpus_of(const PlannedDeployment& p) {
  const Fleet paid = p.paid();
  const double gpus = paid_gpus(*p.candidate.scenario.deployment, paid.replicas);
  return p.candidate.disaggregated() ? gpus + paid_gpus(p.candidate.prefill(), paid.prefill_replicas) : gpus;
}

std::string gpus_text(const PlannedDeployment& p) {
  return paid_gpus_of(p) > p.gpus() ? fmt::format("{} of {:.0f}", p.gpus(), paid_gpus_of(p)) : std::to_string(p.gpus());
}

std::string fleet_of(const Candidate& c, const Fleet& fleet) {
  if (c.disaggregated())
    return fmt::format("{} prefill, {} decode worker{}", fleet.prefill_replicas, fleet.replicas,
                       fleet.replicas == 1 ? "" : "s");
  return fmt::format("{} replica{}", fleet.replicas, fleet.replicas == 1 ? "" : "s");
}

}  // namespace

std::string layout_of(const Candidate& c) {
  const std::string decode = layout_of(c.scenario.deployment->sharding);
  return with_speculation(c, c.disaggregated() ? layout_of(c.prefill().sharding) + " > " + decode : decode);
}

const char* unit_of(LoadKind kind) {
  if (kind == LoadKind::kPace) return "times the trace's rate";
  return kind == LoadKind::kUsers ? "users" : "requests/s";
}

const Candidate& candidate_of(const PlanResult& r, std::uint64_t index) {
  return *std::find_if(r.candidates.begin(), r.candidates.end(), [&](const Candidate& c) { return c.index == index; });
}

std::string bound_of(const PlanAnswer& a) {
  if (a.sensitivities.changes.empty()) return "";
  const Sensitivity& most = a.sensitivities.changes.front();
  if (most.throughput_change < 0.01) return "nothing that ten percent more would ease";
  return most.what;
}

namespace {

/// A column of the ranking; where the table is too wide those of the highest `rank` go first.
struct Column {
  int rank;
  std::string name;
  std::function<std::string(const PlannedDeployment&)> cell;
};

std::string constants_of(const Deployment& d) {
  if (d.fidelity == Fidelity::kIdeal) return "datasheet";
  if (of_another_vendor(d)) return "other vendor's";
  return d.efficiency.carried_over_from.empty() ? "measured" : "carried over";
}

std::string sure(const PlannedDeployment& p) {
  return p.probability ? fmt::format("{:.0f} %", 100 * *p.probability) : "-";
}

std::vector<Column> columns_of(const PlanAnswer& a) {
  const auto deployment = [](const PlannedDeployment& p) -> const Deployment& {
    return *p.candidate.scenario.deployment;
  };
  std::vector<Column> columns{{0, "GPU", [](const auto& p) { return p.candidate.gpu; }},
                              {0, "GPUs", [](const auto& p) { return gpus_text(p); }},
                              {1, "engine", [=](const auto& p) { return engine_name(deployment(p).engine); }},
                              {0, "fleet", [](const auto& p) { return fleet_layout(p); }},
                              {0, "formats", [](const auto& p) { return p.candidate.precision; }}};
  if (!a.result.ranked.empty()) {
    for (const Objective& o : a.result.ranked.front().candidate.scenario.objectives)
      columns.push_back({0, o.name(), [o](const auto& p) { return human_time(observed(o, p.result.metrics).base()); }});
  }
  const auto price = [&a](const PlannedDeployment& p) { return token_price(p, a.plan); };
  columns.insert(
      columns.end(),
      {{0, "P", [](const auto& p) { return sure(p); }},
       {0, "USD/h", [](const auto& p) { return significant(p.usd_per_hour(), 3); }},
       {3, "USD/M in", [=](const auto& p) { return significant(price(p).usd_per_million_input, 3); }},
       {3, "USD/M cached", [=](const auto& p) { return significant(price(p).usd_per_million_cached_input, 3); }},
       {3, "USD/M out", [=](const auto& p) { return significant(price(p).usd_per_million_output, 3); }},
       {2, "tokens/s/GPU", [](const auto& p) { return significant(p.tokens_per_s_per_gpu()); }},
       {4, "tokens/s/user", [](const auto& p) { return significant(p.tokens_per_s_per_user(), 3); }},
       {1, "constants", [=](const auto& p) { return constants_of(deployment(p)); }},
       {5, "price", [=](const auto& p) { return price_line(deployment(p)); }},
       {4, "seqs", [=](const auto& p) { return std::to_string(deployment(p).engine.max_num_seqs); }},
       {4, "tokens",
        [=](const auto& p) {
          const Deployment& prefilling = p.candidate.disaggregated() ? p.candidate.prefill() : deployment(p);
          return std::to_string(prefilling.engine.max_num_batched_tokens);
        }},
       {4, "J/token", [=](const auto& p) { return significant(price(p).joules_per_output_token, 3); }},
       {4, "margin", [](const auto& p) {
          return p.result.verdicts.empty() ? "-" : fmt::format("{:.0f} %", 100 * (1 - p.result.worst_ratio));
        }}});
  return columns;
}

VerdictTable ranking(const PlanAnswer& a) {
  const std::vector<Column> columns = columns_of(a);
  VerdictTable table{.columns = {}, .rows = {}, .in_all = a.result.ranked.size()};
  for (const Column& c : columns) table.columns.push_back(c.name), table.ranks.push_back(c.rank);
  for (std::size_t i = 0; i < std::min(kShown, a.result.ranked.size()); ++i) {
    std::vector<std::string>& row = table.rows.emplace_back();
    for (const Column& c : columns) row.push_back(c.cell(a.result.ranked[i]));
  }
  return table;
}

/// What P is, where the table has some.
std::string p_column_text(const PlanAnswer& a) {
  const auto shown = std::span(a.result.ranked).first(std::min(kShown, a.result.ranked.size()));
  const auto known = std::count_if(shown.begin(), shown.end(), [](const auto& p) { return p.probability.has_value(); });
  if (known == 0) return "";
  return fmt::format("P: probability that every objective is met{}\n",
                     known == std::ssize(shown) ? "" : fmt::format(", worked out for the first {}", known));
}

/// The fleet, and what it costs.
std::string fleet_text(const PlannedDeployment& w) {
  const Deployment& d = *w.candidate.scenario.deployment;
  const bool apart = w.candidate.disaggregated();
  const std::string what =
      apart ? fmt::format("prefill on {}\ndecode on {}\n", deployment_line(w.candidate.prefill()), deployment_line(d))
            : deployment_line(d) + "\n";
  return what +
         fmt::format("{}{}: {} GPU{}, {} USD/h\n", fleet_of(w.candidate, w.fleet()),
                     w.spare > 0 ? fmt::format(" and {} spare{}", w.spare, apart ? " of each" : "") : "", w.gpus(),
                     w.gpus() == 1 ? "" : "s", significant(w.usd_per_hour(), 3)) +
         (paid_gpus_of(w) > w.gpus()
              ? fmt::format("  {:.0f} GPUs are paid for: instances are rented whole\n", paid_gpus_of(w))
              : "");
}

/// Each objective and limit, and how far it is met.
std::string verdicts_text(const PlannedDeployment& w, const PlanSpec& plan) {
  std::string out;
  if (plan.goodput > 0)
    out += fmt::format(
        "  goodput      {:.2f} % of the requests within all limits (95 % confident above {:.2f} %), asked {:g} %\n",
        100 * w.result.goodput, 100 * w.result.goodput_low, 100 * plan.goodput);
  for (const Verdict& v : w.result.verdicts) {
    if (plan.goodput > 0) {
      out += fmt::format("  {:<12} {}, limit of a request {}\n", v.objective.name(), human_time(v.value.base()),
                         human_time(v.objective.limit.base()));
      continue;
    }
    const LogSpread spread = quick_spread(w.candidate.scenario, w.result.metrics, v.objective.name());
    out += fmt::format("  {:<12} {} (sampling: 95 % confident below {}), limit {}: margin {:.0f} %\n",
                       v.objective.name(), human_time(v.value.base()), human_time(v.upper.base()),
                       human_time(v.objective.limit.base()), 100 * v.margin());
    out += fmt::format("  {:<12} 90 % of deployments like it: {} to {}{}\n", "",
                       human_time(v.value.base() * std::exp(spread.low)),
                       human_time(v.value.base() * std::exp(spread.high)),
                       v.value.base() * std::exp(spread.high) > v.objective.limit.base() ? ", beyond the limit" : "");
  }
  const SpeculationSpec& drafts = w.candidate.scenario.serving.speculation;
  if (drafts.active())
    out += fmt::format("  speculation: {}, {} drafts a step\n", name_of(drafts.method), drafts.num_speculative_tokens);
  if (plan.max_power.value > 0)
    out += fmt::format("  power        {} W in the mean, 95 % sure to stay below {} W, limit {} W\n",
                       significant(w.power().value, 3), significant(w.power_bound().value, 3),
                       significant(plan.max_power.value, 3));
  if (plan.max_cost.value > 0)
    out += fmt::format("  cost         {} USD/h, limit {} USD/h\n", significant(w.usd_per_hour(), 3),
                       significant(plan.max_cost.value, 3));
  return out;
}

/// How sure it is, and what it costs to be surer.
std::string probability_text(const PlanAnswer& a) {
  const PlannedDeployment& w = a.result.ranked.front();
  if (!w.probability) return "";
  std::string out = fmt::format(
      "  {} with probability {:.0f} % ({} draws of kernels, host, release{}{})\n",
      w.result.verdicts.empty() ? "no objectives given; the load is held" : "all objectives met", 100 * *w.probability,
      a.result.draws, w.candidate.scenario.serving.speculation.active() ? ", acceptance" : "",
      a.plan.load_uncertainty > 0 ? ", load" : "");
  for (const SaferFleet& f : w.safer) {
    const std::string what =
        a.plan.goal == PlanGoal::kThroughput
            ? fmt::format("{} {}", significant(f.load, 3), unit_of(a.result.kind))
            : fmt::format("{} GPU{}, {} USD/h", f.gpus, f.gpus == 1 ? "" : "s", significant(f.usd_per_hour, 3));
    out += fmt::format("    {:.0f} % sure: {}\n", 100 * f.confidence, what);
  }
  return out;
}

/// What it holds, and what would let it hold more.
std::string reserve_text(const PlanAnswer& a) {
  const PlannedDeployment& w = a.result.ranked.front();
  std::string out;
  if (a.sensitivities.held > 0) {
    out += fmt::format("  carries {} {}; {} up to {}\n", significant(w.load, 3), unit_of(a.result.kind),
                       a.sensitivities.of_fleet ? "holds" : "one replica holds", significant(a.sensitivities.held, 3));
  }
  const bool recorded = a.result.kind == LoadKind::kPace && w.candidate.scenario.workload->clients.empty();
  out += fmt::format("  {} requests simulated{}\n", w.result.requests,
                     !w.confirmed ? ""
                     : recorded   ? ", the trace over and over under another seed than the search's"
                                  : ", under another seed than the search's");
  if (!a.sensitivities.changes.empty())
    out += fmt::format("  bound by {}; ten percent more would change what {} holds, and the cost of a token, by\n",
                       bound_of(a), a.sensitivities.of_fleet ? "the fleet" : "a replica");
  for (const Sensitivity& s : a.sensitivities.changes)
    out += fmt::format("    {:<18} {:+.1f} % (+- {:.1f})  {:+.1f} %\n", s.what, 100 * s.throughput_change,
                       100 * s.error, 100 * s.cost_change());
  return out;
}

/// How often as many replicas are up as carry the load.
std::string availability_text(const PlannedDeployment& w, const PlanSpec& plan) {
  if (plan.availability <= 0) return "";
  return fmt::format("  {} or more replicas are up {:.4g} % of the time, asked {:.6g} %; one is up {:.4g} %\n",
                     w.replicas, 100 * fleet_availability(w.replicas, w.spare, w.candidate.up), 100 * plan.availability,
                     100 * w.candidate.up);
}

std::string winner_text(const PlanAnswer& a) {
  const PlannedDeployment& w = a.result.ranked.front();
  std::string out = fleet_text(w) + availability_text(w, a.plan) +
                    fmt::format("  price: {}\n", price_line(*w.candidate.scenario.deployment)) + probability_text(a) +
                    verdicts_text(w, a.plan) + reserve_text(a) +
                    fmt::format("  standing: {}\n", provenance_line(*w.candidate.scenario.deployment));
  for (const std::string& doubt : w.candidate.scenario.doubts) out += fmt::format("  {}\n", doubt);
  return out;
}

VerdictTable frontier(const PlanResult& r) {
  VerdictTable table{
      .columns = {"GPU", "layout", "precision", "tokens/s/user", "tokens/s/GPU", "USD/M out", "p99 TTFT", "objectives"},
      .rows = {}};
  const std::size_t rows = std::min(kFrontierShown, r.frontier.size());
  for (std::size_t row = 0; row < rows; ++row) {  // evenly, both ends among them
    const ParetoPoint& p = r.frontier[rows > 1 ? row * (r.frontier.size() - 1) / (rows - 1) : 0];
    const Candidate& c = candidate_of(r, p.candidate);
    table.rows.push_back({c.gpu, layout_of(c), c.precision, significant(p.tokens_per_s_per_user, 3),
                          significant(p.tokens_per_s_per_gpu), significant(p.usd_per_million_output, 3),
                          human_time(p.ttft_p99.base()), p.met ? "met" : "missed"});
  }
  return table;
}

/// When the next GPUs must be ordered, in words.
std::string order_by(int month, int lead_months) {
  if (month == 0 || month < lead_months) return "now";
  return fmt::format("month {}", month - lead_months);
}

/// What the GPUs at hand carry, before what is to be bought for the rest.
std::string owned_text(const PlanAnswer& a) {
  const PlannedDeployment& p = a.owned->planned;
  std::string out =
      fmt::format("{} GPUs at hand carry {} of {} {}{}: {} x {} {}, {}, {} USD/h\n", p.gpus(), significant(p.load, 3),
                  significant(a.owned->offered, 3), unit_of(a.result.kind),
                  p.probability ? fmt::format(" with probability {:.0f} %", 100 * *p.probability) : "", p.replicas,
                  p.candidate.gpu, layout_of(p.candidate), p.candidate.precision, significant(p.usd_per_hour(), 3));
  if (a.result.ranked.empty()) return out;
  return out + fmt::format(
                   "with the fleet below, {} USD/h in all; the router gives each replica a share by what it "
                   "holds\n",
                   significant(p.usd_per_hour() + a.result.ranked.front().usd_per_hour(), 3));
}

/// The fleet month by month, of the row that is cheapest to the end; then what the others come to.
void add_growth(const PlanAnswer& a, ResultVerdict& out) {
  const GrowthSpec& growth = *a.plan.growth;
  const GrowthPath& best = a.growth.front();
  VerdictTable table{.columns = {"month", unit_of(a.result.kind), "fleet", "GPUs", "USD/h", "P", "order by"},
                     .rows = {}};
  for (const GrowthStage& s : best.stages) {
    PlannedDeployment p = a.result.ranked[best.row];
    p.replicas = s.fleet.replicas, p.prefill_replicas = s.fleet.prefill_replicas, p.spare = s.spare;
    table.rows.push_back({std::to_string(s.month), significant(s.load, 3), fleet_layout(p), std::to_string(s.gpus),
                          significant(s.usd_per_hour, 3),
                          s.probability ? fmt::format("{:.0f} %", 100 * *s.probability) : std::string("-"),
                          order_by(s.month, growth.lead_months)});
  }
  std::string lines;
  for (const GrowthPath& path : a.growth) {
    const PlannedDeployment& p = a.result.ranked[path.row];
    lines += fmt::format(
        "{} {}, {}: {} USD{}\n", p.candidate.gpu, layout_of(p.candidate), p.candidate.precision,
        significant(path.usd, 4),
        path.outgrown ? fmt::format(" up to month {}, when the load outgrows what the search allows", *path.outgrown)
                      : fmt::format(" over {} months", growth.months));
  }
  out.add(fmt::format("the load grows {:g} % a month: the fleet of {} {}", 100 * growth.per_month,
                      a.result.ranked[best.row].candidate.gpu, layout_of(a.result.ranked[best.row].candidate)),
          std::move(table));
  out.add(a.growth.size() > 1 ? "what each of the best rows costs" : "what it costs", lines);
}

/// What would help, one line each.
std::string advice_text(const PlanResult& r) {
  const Advice& advice = r.advice;
  std::string out;
  if (!advice.binds.empty()) out += fmt::format("  what binds: {}\n", advice.binds);
  if (advice.carries > 0)
    out += fmt::format("  the given GPUs carry {} {}: {}\n", significant(advice.carries, 3), unit_of(r.kind),
                       advice.carries_on);
  if (advice.gpus > 0)
    out += fmt::format("  enough would be: {}, {} USD/h\n", advice.fleet, significant(advice.usd_per_hour, 3));
  for (const std::string& relaxed : advice.relax) out += fmt::format("  or raise {}\n", relaxed);
  return out;
}

std::string search_text(const PlanResult& r) {
  std::vector<std::string> parts;
  const auto add = [&](auto count, const char* one, const char* several) {
    if (count > 0) parts.push_back(fmt::format("{} {}", count, count == 1 ? one : several));
  };
  add(r.unsplittable, "cannot be split or needs too many GPUs", "cannot be split or need too many GPUs");
  add(r.too_large, "does not fit", "do not fit");
  add(r.unsupported, "cannot run", "cannot run");
  add(r.unpriced, "has no price", "have no price");
  add(r.bounded, "ruled out by bounds", "ruled out by bounds");
  add(r.simulated, "simulated", "simulated");
  std::string out = fmt::format("{} candidate{}", r.considered, r.considered == 1 ? "" : "s");
  if (r.pairs > 0) out += fmt::format(" and {} disaggregated pair{} of them", r.pairs, r.pairs == 1 ? "" : "s");
  if (!parts.empty()) out += ": " + join(parts, ", ");
  return out + fmt::format(" ({} run{})\n", r.simulations, r.simulations == 1 ? "" : "s");
}

}  // namespace

Launch launch_of(const PlanAnswer& a, const std::string& engine, const std::string& form) {
  if (a.result.ranked.empty()) return {};
  const PlannedDeployment& winner = a.result.ranked.front();
  const Checkpoints from = checkpoints_of(point_scenario(a.plan.space, winner.candidate.point));
  return {.command = launch_command(winner, engine, from, form)};
}

Launch launch_of(const PlanAnswer& a) {
  if (a.result.ranked.empty()) return {};
  try {
    return launch_of(a, a.result.ranked.front().candidate.scenario.deployment->engine.name, "shell");
  } catch (const ConfigError& error) {
    return {.command = {}, .reason = error.what()};
  }
}

ResultVerdict plan_verdict(const PlanAnswer& a) {
  const PlanResult& r = a.result;
  ResultVerdict out;
  if (a.owned) out.add("", owned_text(a));
  if (a.fleet) add_fleet_verdict(*a.fleet, out);
  const char* of = !a.fleet ? "" : a.fleet->recorded && !a.fleet->of_busiest ? "for the whole:" : "for the peak:";
  if (r.ranked.empty()) {
    out.add(of, no_plan(r, a.plan) + "\n" + advice_text(r));
  } else {
    out.add(of, winner_text(a));
    out.add("", ranking(a));
    if (const std::string text = p_column_text(a); !text.empty()) out.add("", text);
  }
  if (!a.growth.empty()) add_growth(a, out);
  if (!r.frontier.empty()) out.add("frontier of what was simulated", frontier(r));
  out.add("", search_text(r));
  if (const Launch launch = launch_of(a); !launch.command.empty()) {
    out.add("to launch it", launch.command).command = true;
  } else if (!launch.reason.empty()) {
    out.add("", "no launch command: " + launch.reason);
  }
  return out;
}

std::string no_plan(const PlanResult& r, const PlanSpec& plan) {
  if (!r.nearest) return "no deployment: " + (r.reason.empty() ? "nothing could be simulated" : r.reason);
  const PlannedDeployment& n = *r.nearest;
  std::string out = "no deployment meets the objectives; the nearest:";
  for (const Verdict& v : n.result.verdicts)
    out += fmt::format(" {} {} (asked {}),", v.objective.name(), human_time(v.upper.base()),
                       human_time(v.objective.limit.base()));
  if (plan.goodput > 0)
    out += fmt::format(" goodput {:.2f} % (asked {:g} %),", 100 * n.result.goodput_low, 100 * plan.goodput);
  if (!n.result.stationary) out += " the queue grows,";
  if (plan.max_power.value > 0)
    out += fmt::format(" {} W (at most {} W),", significant(n.power_bound().value, 3),
                       significant(plan.max_power.value, 3));
  if (plan.max_cost.value > 0)
    out += fmt::format(" {} USD/h (at most {} USD/h),", significant(n.usd_per_hour(), 3),
                       significant(plan.max_cost.value, 3));
  if (n.probability)
    out += fmt::format(" met with probability {:.0f} % (asked {:.0f} %),", 100 * *n.probability, 100 * plan.confidence);
  out += fmt::format(" on {} x {} ({}, {})", n.gpus(), n.candidate.gpu, layout_of(n.candidate),
                     fleet_of(n.candidate, n.fleet()));
  return out;
}

}  // namespace roofcast
