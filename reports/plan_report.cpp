#include "reports/plan_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/fleet_plan_report.h"
#include "reports/launch_command.h"
#include "reports/plan_tables.h"
#include "reports/plan_verdict.h"
#include "reports/provenance.h"
#include "reports/records_csv.h"
#include "reports/result_schema.h"
#include "sim/plan/prices.h"
#include "sim/plan/sample_value.h"
#include "sim/plan/search/risk.h"
#include "sim/step/deployment.h"

namespace roofcast::reports {
namespace {

Json objective_json(std::size_t place, const PlannedDeployment& p, const PlanSpec& plan) {
  const Verdict& v = p.result.verdicts[place];
  const ObjectiveRange range = range_of(p, place);
  return {{"objective", v.objective.name()},
          {"limit_ms", v.objective.limit.in(kMillisecond)},
          {"value_ms", v.value.in(kMillisecond)},
          {"value_ms_high", v.upper.in(kMillisecond)},
          {"interval_low_ms", range.low.in(kMillisecond)},
          {"interval_high_ms", range.high.in(kMillisecond)},
          {"missed_in_draws", range.missed},
          {"margin", v.margin()},
          {"remark", past_limit(range, v.objective.limit, p, plan)},
          {"met", v.met}};
}

/// The deployment that would be run.
Json layout_json(const PlannedDeployment& p) {
  const Deployment& d = *p.candidate.scenario.deployment;
  Json out = deployment_json(d);
  out["mode"] = p.candidate.disaggregated() ? "disaggregated" : "aggregated";
  out["gpus"] = p.gpus();
  out["replicas"] = p.replicas;
  if (p.candidate.disaggregated()) {  // the other fields are the decode workers'
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

/// What the simulation showed under the load.
void add_prediction(const PlannedDeployment& p, const PlanAnswer& a, Json& out) {
  const ServingMetrics& m = p.result.metrics;
  out["load"] = p.load;
  for (const auto& [name, values] :
       {std::pair{"ttft", &m.ttft_ms}, {"tpot", &m.tpot_ms}, {"itl", &m.itl_ms}, {"e2el", &m.e2el_ms}}) {
    out[fmt::format("median_{}_ms", name)] = sample_value(*values, values->percentile(50));
    out[fmt::format("p99_{}_ms", name)] = sample_value(*values, values->percentile(99));
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
  for (std::size_t i = 0; i < p.result.verdicts.size(); ++i) out["objectives"].push_back(objective_json(i, p, a.plan));
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
  out["price"] = price_json(p.bill().decode.quote);
  add_prediction(p, a, out);
  add_price(p, a, out);
  out["provenance"] = provenance_json(*p.candidate.scenario.deployment);
  return out;
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

/// Cost at other probabilities.
Json safer_json(const PlannedDeployment& w) {
  Json out = Json::array();
  for (const SaferFleet& f : w.safer)
    out.push_back({{"confidence", f.confidence}, {"gpus", f.gpus}, {"load", f.load}, {"usd_per_hour", f.usd_per_hour}});
  return out;
}

/// The main figures for a buyer, from an entry of "deployments".
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
  out["beyond"] = advice.beyond;
  out["relax"] = advice.relax;
  return out;
}

Json owned_json(const OwnedShare& owned) {
  const PlannedDeployment& p = owned.planned;
  return {{"gpu", p.candidate.gpu},
          {"layout", layout_of(p.candidate)},
          {"precision", p.candidate.precision},
          {"replicas", p.replicas},
          {"gpus", p.gpus()},
          {"load", p.load},
          {"offered_load", owned.offered},
          {"probability", p.probability ? Json(*p.probability) : Json()},
          {"usd_per_hour", p.usd_per_hour()}};
}

Json growth_json(const PlanAnswer& a) {
  Json out = Json::array();
  for (const GrowthPath& path : a.growth) {
    const Candidate& c = a.result.ranked[path.row].candidate;
    Json stages = Json::array();
    for (const GrowthStage& s : path.stages)
      stages.push_back({{"month", s.month},
                        {"load", s.load},
                        {"replicas", s.fleet.replicas},
                        {"prefill_replicas", s.fleet.prefill_replicas},
                        {"spare_replicas", s.spare},
                        {"gpus", s.gpus},
                        {"usd_per_hour", s.usd_per_hour},
                        {"probability", s.probability ? Json(*s.probability) : Json()}});
    out.push_back({{"gpu", c.gpu},
                   {"layout", layout_of(c)},
                   {"precision", c.precision},
                   {"usd", path.usd},
                   {"outgrown_in_month", path.outgrown ? Json(*path.outgrown) : Json()},
                   {"stages", std::move(stages)}});
  }
  return out;
}

}  // namespace

Json plan_json(const PlanAnswer& a) {
  const PlanResult& r = a.result;
  Json out = result_head(ResultKind::kPlan);
  out.update({{"roofcast_version", ROOFCAST_VERSION},
              {"goal", name_of(a.plan.goal)},
              {"confidence", a.plan.confidence},
              {"draws", r.draws},
              {"load_unit", unit_of(r.kind)},
              {"max_gpus", a.plan.max_gpus}});
  out["search"] = {{"considered", r.considered},       {"mistaken", r.mistaken},
                   {"unsplittable", r.unsplittable},   {"beyond_gpus", r.beyond_gpus},
                   {"too_large", r.too_large},         {"too_dear", r.too_dear},
                   {"unsupported", r.unsupported},     {"unpriced", r.unpriced},
                   {"unpowered", r.unpowered},         {"disaggregated_pairs", r.pairs},
                   {"ruled_out_by_bounds", r.bounded}, {"simulated", r.simulated},
                   {"simulations", r.simulations},     {"below_availability", r.below_availability}};
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
  if (a.owned) out["owned"] = owned_json(*a.owned);
  if (!a.growth.empty()) out["growth"] = growth_json(a);
  out["pareto"] = frontier_json(r, r.frontier);
  out["pareto_cost"] = frontier_json(r, r.cost_frontier);
  out["pareto_by_gpu"] = frontier_json(r, r.gpu_frontiers);
  out["pareto_cost_by_gpu"] = frontier_json(r, r.gpu_cost_frontiers);
  if (const Launch launch = launch_of(a); !launch.command.empty()) out["launch_command"] = launch.command;
  out["verdict"] = verdict_json(plan_verdict(a));
  return out;
}

namespace {

/// One row per deployment; only the header if none meets the objectives.
std::string deployments_csv(const Json& plan) {
  if (!plan["deployments"].empty() || !plan.contains("nearest")) return records_csv(plan["deployments"]);
  const std::string csv = records_csv(Json::array({plan["nearest"]}));
  return csv.substr(0, csv.find('\n') + 1);
}

}  // namespace

std::string plan_report(const PlanAnswer& a, const std::string& format, bool wide, const Json& question) {
  if (format == "json") return result_text(plan_json(a), question);
  if (format == "csv") return a.fleet ? records_csv(fleet_plan_json(*a.fleet)["hours"]) : deployments_csv(plan_json(a));
  return verdict_text(plan_verdict(a), wide);
}

}  // namespace roofcast::reports
