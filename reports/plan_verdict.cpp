#include "reports/plan_verdict.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/text.h"
#include "reports/fleet_plan_report.h"
#include "reports/launch_command.h"
#include "reports/plan_report.h"
#include "reports/plan_tables.h"
#include "reports/provenance.h"
#include "reports/table.h"
#include "sim/plan/acceptance.h"
#include "sim/plan/prices.h"
#include "sim/plan/search/instance_link.h"
#include "sim/plan/search/risk.h"
#include "sim/plan/search/spares.h"
#include "sim/step/deployment.h"

namespace roofcast::reports {
namespace {

std::string fleet_of(const Candidate& c, const Fleet& fleet) {
  if (c.disaggregated())
    return fmt::format("{} prefill, {} decode worker{}", fleet.prefill_replicas, fleet.replicas,
                       fleet.replicas == 1 ? "" : "s");
  return fmt::format("{} replica{}", fleet.replicas, fleet.replicas == 1 ? "" : "s");
}

}  // namespace

std::string order_by(int month, int lead_months) {
  if (month == 0 || month < lead_months) return "now";
  return fmt::format("month {}", month - lead_months);
}

const char* unit_of(LoadKind kind) {
  if (kind == LoadKind::kPace) return "times the trace's rate";
  return kind == LoadKind::kUsers ? "users" : "requests/s";
}

std::string bound_of(const PlanAnswer& a) {
  if (a.sensitivities.changes.empty()) return "";
  const Sensitivity& most = a.sensitivities.changes.front();
  if (most.throughput_change < 0.01) return "no resource of which 10 % more would help";
  return most.what;
}

namespace {

/// Explains the column P, if the table has it, and why the first row is first.
std::string below_ranking(const PlanAnswer& a) {
  const auto shown = std::span(a.result.ranked).first(std::min(kRowsShown, a.result.ranked.size()));
  const auto known = std::count_if(shown.begin(), shown.end(), [](const auto& p) { return p.probability.has_value(); });
  std::string out;
  if (known > 0)
    out += fmt::format("P: probability that every objective is met{}\n",
                       known == std::ssize(shown) ? "" : "; -: not worked out");
  if (a.fleet && shown.size() > 1 && better(shown[1], shown[0], a.plan.goal))
    out += "first: the deployment whose day costs the least; then by the cost at the peak\n";
  return out;
}

/// "1 replica", "3 prefill, 2 decode workers and 1 spare of each".
std::string fleet_words(const PlannedDeployment& w) {
  const std::string spare =
      w.spare > 0 ? fmt::format(" and {} spare{}", w.spare, w.candidate.disaggregated() ? " of each" : "") : "";
  return fleet_of(w.candidate, w.fleet()) + spare;
}

/// What is bought, what load it serves, and the cost.
std::string headline(const PlanAnswer& a) {
  constexpr double kHoursPerMonth = 8766.0 / 12;
  const PlannedDeployment& w = a.result.ranked.front();
  const ServingMetrics& m = w.result.metrics;
  const std::string gpus = fmt::format("{} x {}", w.gpus(), w.candidate.gpu);
  const double cost_per_hour = a.share.value_or(w.usd_per_hour());
  const bool priced = std::isfinite(cost_per_hour);
  if (a.result.kind == LoadKind::kWhole && !priced)
    return fmt::format("{} requests in {} on {}; price not known\n", m.completed, human_time(m.duration.base()), gpus);
  if (a.result.kind == LoadKind::kWhole)
    return fmt::format("{} requests in {} on {} for {} USD ({} USD/h)\n", m.completed, human_time(m.duration.base()),
                       gpus, usd(w.usd_per_hour() * m.duration.in(kHour)), usd(w.usd_per_hour()));
  const std::string tokens =
      a.plan.goal == PlanGoal::kThroughput
          ? fmt::format(" ({} output tokens/s per GPU)", significant(w.tokens_per_s_per_gpu(), 3))
          : "";
  const std::string cost =
      priced ? fmt::format(" for {} USD/h ({:.0f} USD per month)", usd(cost_per_hour), cost_per_hour * kHoursPerMonth)
             : "; price not known";
  return fmt::format("{} {}{} on {}{}\n", significant(w.load, 3), unit_of(a.result.kind), tokens, gpus, cost);
}

/// The fleet and its cost.
std::string fleet_text(const PlanAnswer& a) {
  const PlannedDeployment& w = a.result.ranked.front();
  const Deployment& d = *w.candidate.scenario.deployment;
  std::string out =
      w.candidate.disaggregated()
          ? fmt::format("prefill: {}\ndecode: {}\n", deployment_line(w.candidate.prefill()), deployment_line(d))
          : deployment_line(d) + "\n";
  out += fmt::format("{}: {} GPU{}\n", fleet_words(w), w.gpus(), w.gpus() == 1 ? "" : "s");
  if (a.share) {
    out += fmt::format("  on instances that other services share{}\n",
                       std::isfinite(w.usd_per_hour())
                           ? fmt::format("; by itself it would cost {} USD/h", usd(w.usd_per_hour()))
                           : "");
  } else if (const std::string paid = paid_line(w.bill(), w.gpus()); !paid.empty()) {
    out += fmt::format("  {}\n", paid);
  }
  if (w.spare == 0 && w.replicas == 1 && a.result.kind != LoadKind::kWhole && a.plan.goal != PlanGoal::kThroughput)
    out += "  no spare: while it is down, nothing is served (search: spare_replicas or availability)\n";
  return out;
}

/// The link that caches take from prefill to decode workers, and where its speed is from.
std::string link_text(const PlanAnswer& a) {
  const PlannedDeployment& w = a.result.ranked.front();
  const Candidate& c = w.candidate;
  if (!c.disaggregated()) return "";
  Disaggregation disaggregation = *c.scenario.serving.disaggregation;
  disaggregation.prefill_replicas = w.prefill_replicas;
  const std::string from = a.plan.transfer_bandwidth > BytesPerSecond(0) ? "the plan's 'transfer'"
                           : disaggregation.bandwidth > BytesPerSecond(0)
                               ? fmt::format(
                                     "assumed: parts of a host come without its NICs, and Scaleway states {:g} Gbit/s "
                                     "per H100 instance; 'transfer' sets another",
                                     kLinkOfPartialHost.base() * 8 / 1e9)
                               : "each GPU's NIC; 'transfer' sets another";
  const BytesPerSecond link = transfer_bandwidth(*c.scenario.deployment, disaggregation, w.replicas);
  return fmt::format("  caches move at {:.3g} GB/s per GPU ({})\n", link.base() / 1e9, from);
}

/// The price of a million tokens, where known.
std::string token_prices_text(const PlanAnswer& a) {
  const PlannedDeployment& w = a.result.ranked.front();
  const TokenPrice price = token_price(w, a.plan);
  if (!(price.usd_per_million_total > 0)) return "";
  const double part = a.share ? *a.share / w.usd_per_hour() : 1;
  const auto usd = [&](double whole) { return significant(whole * part, 3); };
  const std::string cached = w.result.metrics.cached_tokens > 0
                                 ? fmt::format(", {} cached input", usd(price.usd_per_million_cached_input))
                                 : "";
  return fmt::format("  per million tokens: {} USD input{}, {} output, {} of both\n", usd(price.usd_per_million_input),
                     cached, usd(price.usd_per_million_output), usd(price.usd_per_million_total));
}

/// Drafts, and their assumed acceptance.
std::string speculation_text(const SpeculationSpec& drafts) {
  if (!drafts.active()) return "";
  return fmt::format("  speculation: {}, {} draft{} per step; acceptance {}\n", name_of(drafts.method),
                     drafts.num_speculative_tokens, drafts.num_speculative_tokens == 1 ? "" : "s",
                     acceptance_words(drafts));
}

}  // namespace

std::string past_limit(const ObjectiveRange& range, Seconds limit, const PlannedDeployment& w, const PlanSpec& plan) {
  if (std::isnan(range.missed)) return range.high <= limit ? "" : "exceeds the limit";
  if (range.missed <= 0) return "";
  const bool sure = w.probability.value_or(0) >= plan.confidence - 1e-9;
  return fmt::format("{} the limit in {:.0f} % of the draws", sure ? "misses" : "exceeds", 100 * range.missed);
}

namespace {

/// Each objective and limit, and how well it is met.
std::string verdicts_text(const PlannedDeployment& w, const PlanSpec& plan) {
  std::string out;
  if (plan.goodput > 0)
    out += fmt::format(
        "  goodput      {:.2f} % of the requests within all limits (95 % confident above {:.2f} %), asked {:g} %\n",
        100 * w.result.goodput, 100 * w.result.goodput_low, 100 * plan.goodput);
  for (std::size_t i = 0; i < w.result.verdicts.size(); ++i) {
    const Verdict& v = w.result.verdicts[i];
    if (plan.goodput > 0) {
      out += fmt::format("  {:<12} {}, limit of a request {}\n", v.objective.name(), human_time(v.value.base()),
                         human_time(v.objective.limit.base()));
      continue;
    }
    const ObjectiveRange range = range_of(w, i);
    out += fmt::format("  {:<12} {} (sampling: 95 % confident below {}), limit {}: margin {:.0f} %\n",
                       v.objective.name(), human_time(v.value.base()), human_time(v.upper.base()),
                       human_time(v.objective.limit.base()), 100 * v.margin());
    if (std::isnan(range.low.base())) continue;  // the ideal roofline has none
    const std::string past = past_limit(range, v.objective.limit, w, plan);
    out += fmt::format("  {:<12} 90 % of deployments like it: {} to {}{}\n", "", human_time(range.low.base()),
                       human_time(range.high.base()), past.empty() ? "" : ", " + past);
  }
  if (w.unsteady > 0) out += fmt::format("  queue        grows in {:.0f} % of the draws\n", 100 * w.unsteady);
  out += speculation_text(w.candidate.scenario.serving.speculation);
  if (plan.max_power.value > 0)
    out += fmt::format("  power        {} W on average,{} limit {} W\n", significant(w.power().value, 3),
                       w.candidate.scenario.deployment->fidelity == Fidelity::kIdeal
                           ? ""
                           : fmt::format(" 95 % confident below {} W,", significant(w.power_bound().value, 3)),
                       significant(plan.max_power.value, 3));
  if (plan.max_cost.value > 0)
    out += fmt::format("  cost         {} USD/h, limit {} USD/h\n", usd(w.usd_per_hour()), usd(plan.max_cost.value));
  return out;
}

/// How certain the plan is, and what more certainty costs.
std::string probability_text(const PlanAnswer& a) {
  const PlannedDeployment& w = a.result.ranked.front();
  if (!w.probability) return "";
  std::string out = fmt::format(
      "  {} with probability {:.0f} % ({} draws of kernels, host, release{}{})\n",
      w.result.verdicts.empty() ? "no objectives given; the queue does not grow" : "all objectives met",
      100 * *w.probability, a.result.draws, w.candidate.scenario.serving.speculation.active() ? ", acceptance" : "",
      a.plan.load_uncertainty > 0 ? ", load" : "");
  const auto same = [&](const SaferFleet& f) { return f.gpus == w.gpus() && f.load == w.load; };
  if (w.safer.size() > 1 && std::all_of(w.safer.begin(), w.safer.end(), same)) {
    std::vector<std::string> shares;
    for (const SaferFleet& f : w.safer) shares.push_back(fmt::format("{:.0f}", 100 * f.confidence));
    return out + fmt::format("    {} % sure: the same fleet\n", join(shares, ", "));
  }
  for (const SaferFleet& f : w.safer) {
    const std::string what =
        a.plan.goal == PlanGoal::kThroughput
            ? fmt::format("{} {}", significant(f.load, 3), unit_of(a.result.kind))
            : fmt::format("{} GPU{}, {} USD/h", f.gpus, f.gpus == 1 ? "" : "s", usd(f.usd_per_hour));
    out += fmt::format("    {:.0f} % sure: {}\n", 100 * f.confidence, what);
  }
  return out;
}

/// What it serves, and what would let it serve more.
std::string reserve_text(const PlanAnswer& a) {
  const PlannedDeployment& w = a.result.ranked.front();
  std::string out;
  if (a.sensitivities.held > 0) {
    out += fmt::format("  serves {} {}; {} up to {}\n", significant(w.load, 3), unit_of(a.result.kind),
                       a.sensitivities.of_fleet ? "can serve" : "one replica can serve",
                       significant(a.sensitivities.held, 3));
  } else if (a.sensitivities.held_more > 0) {
    out += fmt::format("  serves {} {}; {} more than {}, the most that was tried\n", significant(w.load, 3),
                       unit_of(a.result.kind), a.sensitivities.of_fleet ? "can serve" : "one replica can serve",
                       significant(a.sensitivities.held_more, 3));
  }
  const bool recorded = a.result.kind == LoadKind::kPace && w.candidate.scenario.workload->clients.empty();
  out += fmt::format("  {} requests simulated{}\n", w.result.requests,
                     !w.confirmed ? ""
                     : recorded   ? ", the trace over and over under another seed than the search's"
                                  : ", under another seed than the search's");
  if (!a.sensitivities.changes.empty())
    out += fmt::format("  bound by {}; effect of 10 % more on {}, and on the cost per token:\n", bound_of(a),
                       a.result.kind == LoadKind::kWhole ? "tokens/s"
                       : a.sensitivities.of_fleet        ? "the load the fleet can serve"
                                                         : "the load a replica can serve");
  for (const Sensitivity& s : a.sensitivities.changes)
    out += fmt::format("    {:<18} {:+.1f} % (+- {:.1f})  {:+.1f} %\n", s.what, 100 * s.throughput_change,
                       100 * s.error, 100 * s.cost_change());
  return out;
}

/// How often enough replicas are up for the load.
std::string availability_text(const PlannedDeployment& w, const PlanSpec& plan) {
  if (plan.availability <= 0) return "";
  std::string out = fmt::format(
      "  {} or more replicas are up {:.5g} % of the time, asked {:.6g} %; one is up {:.4g} %\n", w.replicas,
      100 * fleet_availability(plan, w.candidate, w.replicas, w.spare), 100 * plan.availability, 100 * w.candidate.up);
  if (plan.zones)
    out += fmt::format("  spread over {} zone{}, each up {:.4g} % of the time and interrupted as a whole\n",
                       plan.zones->count, plan.zones->count == 1 ? "" : "s", 100 * w.candidate.zone_up);
  return out;
}

/// The source of its constants; a long one has a line of its own, and what stands against it another.
std::string standing_text(const Deployment& d) {
  std::string line = provenance_line(d);
  const std::size_t source = line.find(": ");
  for (const char* remark : {"; no release given", "; kernels measured"})
    if (const std::size_t at = line.find(remark); at != std::string::npos) line.replace(at, 2, ";\n    ");
  if (line.size() > 86 && source != std::string::npos) line.replace(source, 2, ":\n    ");
  return fmt::format("  provenance: {}\n", line);
}

std::string winner_text(const PlanAnswer& a) {
  const PlannedDeployment& w = a.result.ranked.front();
  std::string out = headline(a) + fleet_text(a) + availability_text(w, a.plan) +
                    fmt::format("  price: {}\n",
                                bill_line(*w.candidate.scenario.deployment,
                                          w.candidate.disaggregated() ? &w.candidate.prefill() : nullptr, w.bill())) +
                    link_text(a) + token_prices_text(a) + probability_text(a) + verdicts_text(w, a.plan) +
                    reserve_text(a) + standing_text(*w.candidate.scenario.deployment);
  for (const std::string& doubt : w.candidate.scenario.doubts) out += fmt::format("  {}\n", doubt);
  return out;
}

/// What the owned GPUs serve, before the GPUs to buy for the rest.
std::string owned_text(const PlanAnswer& a) {
  const PlannedDeployment& p = a.owned->planned;
  std::string out =
      fmt::format("{} owned GPUs serve {} of {} {}{}: {} x {} {}, {}, {} USD/h\n", p.gpus(), significant(p.load, 3),
                  significant(a.owned->offered, 3), unit_of(a.result.kind),
                  p.probability ? fmt::format(" with probability {:.0f} %", 100 * *p.probability) : "", p.replicas,
                  p.candidate.gpu, layout_of(p.candidate), p.candidate.precision, usd(p.usd_per_hour())) +
      fmt::format("  price: {}\n", bill_line(*p.candidate.scenario.deployment, nullptr, p.bill()));
  if (a.result.ranked.empty()) return out;
  return out + fmt::format(
                   "with the fleet below, {} USD/h in all; the router gives each replica a share by its "
                   "capacity\n",
                   usd(p.usd_per_hour() + a.result.ranked.front().usd_per_hour()));
}

/// The fleet month by month for the row that is cheapest in the end, then the others' totals.
void add_growth(const PlanAnswer& a, ResultVerdict& out) {
  const GrowthSpec& growth = *a.plan.growth;
  const GrowthPath& best = a.growth.front();
  VerdictTable table{.columns = {"month", unit_of(a.result.kind), "fleet", "GPUs", "USD/h", "P", "order by"},
                     .rows = {}};
  for (const GrowthStage& s : best.stages) {
    PlannedDeployment p = a.result.ranked[best.row];
    p.replicas = s.fleet.replicas, p.prefill_replicas = s.fleet.prefill_replicas, p.spare = s.spare;
    table.rows.push_back({std::to_string(s.month), significant(s.load, 3), fleet_layout(p), std::to_string(s.gpus),
                          usd(s.usd_per_hour),
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
  out.add(fmt::format("the load grows {:g} % per month: the fleet of {} {}", 100 * growth.per_month,
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
    out += fmt::format("  the given GPUs can serve {} {}: {}\n", significant(advice.carries, 3), unit_of(r.kind),
                       advice.carries_on);
  if (advice.gpus > 0)
    out += fmt::format("  would do: {}, {} USD/h{}\n", advice.fleet, usd(advice.usd_per_hour),
                       advice.beyond.empty() ? "" : "\n    exceeds " + join(advice.beyond, " and "));
  for (const std::string& relaxed : advice.relax) out += fmt::format("  or raise {}\n", relaxed);
  return out;
}

std::string search_text(const PlanResult& r) {
  std::vector<std::string> parts;
  const auto add = [&](auto count, const char* one, const char* several) {
    if (count > 0) parts.push_back(fmt::format("{} {}", count, count == 1 ? one : several));
  };
  add(r.mistaken, "has a wrong setting", "have a wrong setting");
  add(r.unsplittable, "cannot be split so", "cannot be split so");
  add(r.beyond_gpus, "needs more GPUs than there are", "need more GPUs than there are");
  add(r.below_availability, "cannot reach the availability", "cannot reach the availability");
  add(r.too_dear, "exceeds max_cost", "exceed max_cost");
  add(r.too_large, "does not fit", "do not fit");
  add(r.unsupported, "cannot run", "cannot run");
  add(r.unpriced, "has no price", "have no price");
  add(r.unpowered, "is of unknown power", "are of unknown power");
  add(r.bounded, "ruled out by bounds", "ruled out by bounds");
  add(r.simulated, "simulated", "simulated");
  std::string out = fmt::format("{} candidate{}", r.considered, r.considered == 1 ? "" : "s");
  if (r.pairs > 0) out += fmt::format(" and {} disaggregated pair{} of them", r.pairs, r.pairs == 1 ? "" : "s");
  std::string fates = join(parts, ", ");
  if (fates.size() > 85) fates.replace(fates.rfind(", "), 2, ",\n  ");
  if (!parts.empty()) out += (out.size() + fates.size() > 85 ? ":\n  " : ": ") + fates;
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

std::string outcome_text(const PlanAnswer& a) {
  return a.result.ranked.empty() ? no_plan(a.result, a.plan) + "\n" + advice_text(a.result) : winner_text(a);
}

ResultVerdict plan_verdict(const PlanAnswer& a) {
  const PlanResult& r = a.result;
  ResultVerdict out;
  if (a.owned) out.add("", owned_text(a));
  if (a.fleet) add_fleet_verdict(*a.fleet, out);
  const char* of = !a.fleet ? "" : a.fleet->recorded && !a.fleet->of_busiest ? "for the whole:" : "for the peak:";
  out.add(of, outcome_text(a));
  if (!r.ranked.empty()) {
    out.add("", ranking_table(a));
    if (const std::string text = below_ranking(a); !text.empty()) out.add("", text);
  }
  if (!a.growth.empty()) add_growth(a, out);
  const bool generates = std::any_of(r.frontier.begin(), r.frontier.end(),
                                     [](const ParetoPoint& p) { return p.tokens_per_s_per_user > 0; });
  if (generates) out.add("frontier of what was simulated", frontier_table(r));
  std::string notes;
  for (const std::string& note : r.notes) {
    if (note != r.reason) notes += note + "\n";  // already printed above
  }
  if (!notes.empty()) out.add("notes", notes);
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
  const bool holds = n.result.met && n.probability.value_or(1) >= plan.confidence - 1e-9;
  std::string out =
      fmt::format("no deployment meets the objectives{}; the nearest:", holds ? " within the limits" : "");
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
    out += fmt::format(" {} USD/h (at most {} USD/h),", usd(n.usd_per_hour()), usd(plan.max_cost.value));
  if (n.probability)
    out += fmt::format(" met with probability {:.0f} % (asked {:.0f} %),", 100 * *n.probability, 100 * plan.confidence);
  out += fmt::format(" on {} x {} ({}, {})", n.gpus(), n.candidate.gpu, layout_of(n.candidate),
                     fleet_of(n.candidate, n.fleet()));
  return out;
}

}  // namespace roofcast::reports
