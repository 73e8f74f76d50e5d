#include "reports/plan_report.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "reports/fleet_plan_report.h"
#include "reports/provenance.h"
#include "reports/records_csv.h"
#include "reports/result_schema.h"
#include "reports/table.h"
#include "sim/plan/prices.h"
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

/// Prefill > decode where they are apart.
std::string layout_of(const Candidate& c) {
  const std::string decode = layout_of(c.scenario.deployment->sharding);
  return with_speculation(c, c.disaggregated() ? layout_of(c.prefill().sharding) + " > " + decode : decode);
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

std::string fleet_of(const Candidate& c, const Fleet& fleet) {
  if (c.disaggregated())
    return fmt::format("{} prefill, {} decode worker{}", fleet.prefill_replicas, fleet.replicas,
                       fleet.replicas == 1 ? "" : "s");
  return fmt::format("{} replica{}", fleet.replicas, fleet.replicas == 1 ? "" : "s");
}

const char* unit_of(LoadKind kind) {
  if (kind == LoadKind::kPace) return "times the trace's rate";
  return kind == LoadKind::kUsers ? "users" : "requests/s";
}

Json verdict_json(const Verdict& v, const PlannedDeployment& p) {
  const LogSpread spread = quick_spread(p.candidate.scenario, p.result.metrics, v.objective.name());
  return {{"objective", v.objective.name()},
          {"limit_ms", v.objective.limit.in(kMillisecond)},
          {"value_ms", v.value.in(kMillisecond)},
          {"value_ms_high", v.upper.in(kMillisecond)},
          {"interval_low_ms", v.value.in(kMillisecond)*std::exp(spread.low)},
          {"interval_high_ms", v.value.in(kMillisecond)*std::exp(spread.high)},
          {"margin", v.margin()},
          {"met", v.met}};
}

/// What would be run.
Json layout_json(const PlannedDeployment& p) {
  const Deployment& d = *p.candidate.scenario.deployment;
  Json out = deployment_json(d);
  out["mode"] = p.candidate.disaggregated() ? "disaggregated" : "aggregated";
  out["gpus"] = p.gpus();
  out["replicas"] = p.replicas;
  if (p.candidate.disaggregated()) {  // the rest is that of the decode workers
    Json prefill = deployment_json(p.candidate.prefill());
    prefill["replicas"] = p.prefill_replicas;
    prefill["max_num_batched_tokens"] = p.candidate.prefill().engine.max_num_batched_tokens;
    out["prefill"] = prefill;
  }
  out["spare_replicas"] = p.spare;
  out["max_num_seqs"] = d.engine.max_num_seqs;
  out["max_num_batched_tokens"] = d.engine.max_num_batched_tokens;
  return out;
}

/// What the load on it was simulated to see.
void add_prediction(const PlannedDeployment& p, const PlanAnswer& a, Json& out) {
  const ServingMetrics& m = p.result.metrics;
  out["load"] = p.load;
  for (const auto& [name, values] :
       {std::pair{"ttft", &m.ttft_ms}, {"tpot", &m.tpot_ms}, {"itl", &m.itl_ms}, {"e2el", &m.e2el_ms}}) {
    out[fmt::format("median_{}_ms", name)] = values->percentile(50);
    out[fmt::format("p99_{}_ms", name)] = values->percentile(99);
  }
  out["requests_simulated"] = p.result.requests;
  out["confirmed"] = p.confirmed;
  if (a.plan.goodput > 0) {
    out["goodput"] = {{"asked", a.plan.goodput},
                      {"share", p.result.goodput},
                      {"share_low", p.result.goodput_low},
                      {"met", p.result.goodput_low >= a.plan.goodput}};
  }
  out["objectives"] = Json::array();
  for (const Verdict& v : p.result.verdicts) out["objectives"].push_back(verdict_json(v, p));
  out["output_throughput"] = p.output_tokens_per_s();
  out["output_tokens_per_s_per_gpu"] = p.tokens_per_s_per_gpu();
  out["output_tokens_per_s_per_user"] = p.tokens_per_s_per_user();
  out["mean_power_watts"] = p.power().value;
  out["mean_power_watts_high"] = p.power_bound().value;
  if (const SpeculationSpec& s = p.candidate.scenario.serving.speculation; s.active())
    out["speculation"] = {{"method", name_of(s.method)}, {"num_speculative_tokens", s.num_speculative_tokens}};
  out["kv_cache_peak_usage"] = m.kv_peak_usage;
}

void add_price(const PlannedDeployment& p, const PlanAnswer& a, Json& out) {
  const TokenPrice price = token_price(p, a.plan);
  out["usd_per_hour"] = p.usd_per_hour();
  out["usd_per_million_input_tokens"] = price.usd_per_million_input;
  out["usd_per_million_cached_input_tokens"] = price.usd_per_million_cached_input;
  out["usd_per_million_output_tokens"] = price.usd_per_million_output;
  out["usd_per_million_total_tokens"] = price.usd_per_million_total;
  out["input_share_of_cost"] = price.input_share;
  out["joules_per_output_token"] = price.joules_per_output_token;
  if (a.plan.grams_co2_per_kwh > 0) out["grams_co2_per_million_output_tokens"] = price.grams_co2_per_million_output;
}

Json deployment_entry(const PlannedDeployment& p, const PlanAnswer& a) {
  Json out = layout_json(p);
  out["probability"] = p.probability ? Json(*p.probability) : Json();
  out["price"] = price_json(*p.candidate.scenario.deployment);
  add_prediction(p, a, out);
  add_price(p, a, out);
  out["provenance"] = provenance_json(*p.candidate.scenario.deployment);
  return out;
}

const Candidate& candidate_of(const PlanResult& r, std::uint64_t index) {
  return *std::find_if(r.candidates.begin(), r.candidates.end(), [&](const Candidate& c) { return c.index == index; });
}

Json frontier_json(const PlanResult& r, const std::vector<ParetoPoint>& frontier) {
  Json out = Json::array();
  for (const ParetoPoint& p : frontier) {
    const Candidate& c = candidate_of(r, p.candidate);
    out.push_back({{"gpu", c.gpu},
                   {"layout", layout_of(c)},
                   {"mode", c.disaggregated() ? "disaggregated" : "aggregated"},
                   {"precision", c.precision},
                   {"gpus", p.gpus},
                   {"load_per_replica", p.load},
                   {"output_tokens_per_s_per_user", p.tokens_per_s_per_user},
                   {"output_tokens_per_s_per_gpu", p.tokens_per_s_per_gpu},
                   {"usd_per_million_output_tokens", p.usd_per_million_output},
                   {"p99_ttft_ms", p.ttft_p99.in(kMillisecond)},
                   {"objectives_met", p.met}});
  }
  return out;
}

/// What limits the winner: the perturbation that helps the most.
std::string bound_of(const PlanAnswer& a) {
  if (a.sensitivities.changes.empty()) return "";
  const Sensitivity& most = a.sensitivities.changes.front();
  if (most.throughput_change < 0.01) return "nothing that ten percent more would ease";
  return most.what;
}

/// What the winner takes to be more or less sure: the distribution of its cost.
Json safer_json(const PlannedDeployment& w) {
  Json out = Json::array();
  for (const SaferFleet& f : w.safer)
    out.push_back({{"confidence", f.confidence}, {"gpus", f.gpus}, {"load", f.load}, {"usd_per_hour", f.usd_per_hour}});
  return out;
}

/// What a buyer compares, of an entry of "deployments".
Json candidate_json(const Json& d) {
  Json out;
  for (const char* key : {"engine", "engine_version", "gpu", "gpus", "replicas", "mode", "parallelism", "precision",
                          "probability", "usd_per_hour", "usd_per_million_output_tokens", "price", "provenance"})
    out[key] = d[key];
  return out;
}

Json advice_json(const PlanResult& r) {
  const Advice& advice = r.advice;
  Json out{{"binds", advice.binds}, {"carries", advice.carries}, {"carries_on", advice.carries_on}};
  if (advice.gpus > 0)
    out["would_do"] = {{"gpus", advice.gpus}, {"usd_per_hour", advice.usd_per_hour}, {"fleet", advice.fleet}};
  out["relax"] = advice.relax;
  return out;
}

Json to_json(const PlanAnswer& a) {
  const PlanResult& r = a.result;
  Json out = result_head(ResultKind::kPlan);
  out.update({{"roofcast_version", ROOFCAST_VERSION},
              {"goal", name_of(a.plan.goal)},
              {"confidence", a.plan.confidence},
              {"draws", r.draws},
              {"load_unit", unit_of(r.kind)},
              {"max_gpus", a.plan.max_gpus}});
  out["search"] = {
      {"considered", r.considered},       {"unsplittable", r.unsplittable}, {"too_large", r.too_large},
      {"unsupported", r.unsupported},     {"unpriced", r.unpriced},         {"disaggregated_pairs", r.pairs},
      {"ruled_out_by_bounds", r.bounded}, {"simulated", r.simulated},       {"simulations", r.simulations}};
  out["deployments"] = Json::array();
  for (const PlannedDeployment& p : r.ranked) out["deployments"].push_back(deployment_entry(p, a));
  out["notes"] = r.notes;
  if (!r.ranked.empty()) {
    out["winner"] = out["deployments"].front();
    out["safer"] = safer_json(r.ranked.front());
  }
  out["candidates"] = Json::array();
  for (const Json& d : out["deployments"]) out["candidates"].push_back(candidate_json(d));
  if (r.ranked.empty()) out["advice"] = advice_json(r);
  if (!r.ranked.empty()) {
    out["bound"] = bound_of(a);
    if (a.sensitivities.held > 0)
      out[a.sensitivities.of_fleet ? "load_held" : "load_held_per_replica"] = a.sensitivities.held;
    out["sensitivities"] = Json::array();
    for (const Sensitivity& s : a.sensitivities.changes) {
      out["sensitivities"].push_back({{"ten_percent_more", s.what},
                                      {"throughput_change", s.throughput_change},
                                      {"throughput_change_error", s.error},
                                      {"cost_change", s.cost_change()}});
    }
  } else if (r.nearest) {
    out["nearest"] = deployment_entry(*r.nearest, a);
  }
  if (a.fleet) out["fleet"] = fleet_plan_json(*a.fleet);
  out["pareto"] = frontier_json(r, r.frontier);
  out["pareto_cost"] = frontier_json(r, r.cost_frontier);
  return out;
}

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
                              {0, "GPUs", [](const auto& p) { return std::to_string(p.gpus()); }},
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

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  for (const std::string& line : split(text, '\n')) widest = std::max(widest, line.size());
  return widest;
}

/// All columns, or as many as fit a page of 100.
std::string ranking(const PlanAnswer& a, std::size_t most, bool wide) {
  constexpr std::size_t kPage = 100;
  const std::vector<Column> columns = columns_of(a);
  std::string text;
  for (int rank = wide ? 5 : 3; rank >= 0; --rank) {
    std::vector<std::string> header;
    for (const Column& c : columns) {
      if (c.rank <= rank) header.push_back(c.name);
    }
    Table table(header);
    for (std::size_t i = 0; i < std::min(most, a.result.ranked.size()); ++i) {
      std::vector<std::string> row;
      for (const Column& c : columns) {
        if (c.rank <= rank) row.push_back(c.cell(a.result.ranked[i]));
      }
      table.row(row);
    }
    text = table.text();
    if (wide || widest_line(text) <= kPage) break;
  }
  return text;
}

/// The fleet, and what it costs.
std::string fleet_text(const PlannedDeployment& w) {
  const Deployment& d = *w.candidate.scenario.deployment;
  const bool apart = w.candidate.disaggregated();
  const std::string what =
      apart ? fmt::format("prefill on {}\ndecode on {}\n", deployment_line(w.candidate.prefill()), deployment_line(d))
            : deployment_line(d) + "\n";
  return what + fmt::format("{}{}: {} GPU{}, {} USD/h\n", fleet_of(w.candidate, w.fleet()),
                            w.spare > 0 ? fmt::format(" and {} spare{}", w.spare, apart ? " of each" : "") : "",
                            w.gpus(), w.gpus() == 1 ? "" : "s", significant(w.usd_per_hour(), 3));
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
      "  all objectives met with probability {:.0f} % ({} draws of kernels, host, release{}{})\n", 100 * *w.probability,
      a.result.draws, w.candidate.scenario.serving.speculation.active() ? ", acceptance" : "",
      a.plan.load_uncertainty > 0 ? ", load" : "");
  for (const SaferFleet& f : w.safer) {
    const std::string what = a.plan.goal == PlanGoal::kThroughput
                                 ? fmt::format("{} {}", significant(f.load, 3), unit_of(a.result.kind))
                                 : fmt::format("{} GPUs, {} USD/h", f.gpus, significant(f.usd_per_hour, 3));
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

std::string winner_text(const PlanAnswer& a) {
  const PlannedDeployment& w = a.result.ranked.front();
  std::string out = fleet_text(w) + fmt::format("  price: {}\n", price_line(*w.candidate.scenario.deployment)) +
                    probability_text(a) + verdicts_text(w, a.plan) + reserve_text(a) +
                    fmt::format("  standing: {}\n", provenance_line(*w.candidate.scenario.deployment));
  for (const std::string& doubt : w.candidate.scenario.doubts) out += fmt::format("  {}\n", doubt);
  return out;
}

std::string frontier_text(const PlanResult& r) {
  Table table({"GPU", "layout", "precision", "tokens/s/user", "tokens/s/GPU", "USD/M out", "p99 TTFT", "objectives"});
  const std::size_t rows = std::min(kFrontierShown, r.frontier.size());
  for (std::size_t row = 0; row < rows; ++row) {  // evenly, both ends among them
    const ParetoPoint& p = r.frontier[rows > 1 ? row * (r.frontier.size() - 1) / (rows - 1) : 0];
    const Candidate& c = candidate_of(r, p.candidate);
    table.row({c.gpu, layout_of(c), c.precision, significant(p.tokens_per_s_per_user, 3),
               significant(p.tokens_per_s_per_gpu), significant(p.usd_per_million_output, 3),
               human_time(p.ttft_p99.base()), p.met ? "met" : "missed"});
  }
  return table.text();
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
  for (const std::string& relaxed : advice.relax) out += fmt::format("  or relax {}\n", relaxed);
  return out;
}

}  // namespace

std::string no_plan(const PlanResult& r, const PlanSpec& plan) {
  if (!r.nearest) return "no deployment: " + (r.reason.empty() ? "nothing could be simulated" : r.reason);
  const PlannedDeployment& n = *r.nearest;
  std::string out = "no deployment meets the objectives; the nearest feasible:";
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

std::string plan_report(const PlanAnswer& a, const std::string& format, bool wide) {
  if (format == "json") return result_text(to_json(a));
  if (format == "csv") return records_csv(a.fleet ? fleet_plan_json(*a.fleet)["hours"] : to_json(a)["deployments"]);
  const PlanResult& r = a.result;
  std::string out;
  if (a.fleet)
    out += fleet_plan_text(*a.fleet) +
           (a.fleet->recorded && !a.fleet->of_busiest ? "for the whole:\n" : "for the peak:\n");
  if (!r.ranked.empty()) out += winner_text(a) + "\n" + ranking(a, kShown, wide) + "\n";
  if (r.ranked.empty()) out += no_plan(r, a.plan) + "\n" + advice_text(r) + "\n";
  if (!r.frontier.empty()) out += "frontier of what was simulated\n" + frontier_text(r) + "\n";
  out += fmt::format("{} candidates{}: {} cannot be split or need too many GPUs, {} do not fit,\n", r.considered,
                     r.pairs > 0 ? fmt::format(" and {} disaggregated pairs of them", r.pairs) : "", r.unsplittable,
                     r.too_large);
  return out + fmt::format("{} cannot run, {} have no price, {} ruled out by bounds, {} simulated ({} runs)\n",
                           r.unsupported, r.unpriced, r.bounded, r.simulated, r.simulations);
}

}  // namespace roofcast
