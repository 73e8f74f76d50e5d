#include "reports/services_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/plan_report.h"
#include "reports/plan_tables.h"
#include "reports/plan_verdict.h"
#include "reports/provenance.h"
#include "reports/records_csv.h"
#include "reports/result_schema.h"
#include "reports/table.h"
#include "reports/verdict.h"
#include "sim/plan/prices.h"
#include "sim/step/deployment.h"

namespace roofcast::reports {
namespace {

constexpr double kHoursPerMonth = 8766.0 / 12;

/// Whether the service has a fleet, within the limits of all.
bool has_fleet(const ServicesAnswer& a, const ServiceAnswer& s) { return a.joint && !s.answer.result.ranked.empty(); }

const PlannedDeployment& fleet_of(const ServiceAnswer& s) { return s.answer.result.ranked.front(); }

std::string gpus_words(int gpus) { return fmt::format("{} GPU{}", gpus, gpus == 1 ? "" : "s"); }

std::string names(const ServicesAnswer& a, bool with_fleet) {
  std::vector<std::string> out;
  for (const ServiceAnswer& s : a.services) {
    if (s.answer.result.ranked.empty() != with_fleet) out.push_back(s.name);
  }
  return join(out, ", ");
}

double apart(const ServicesAnswer& a) {
  double usd = 0;
  for (const ServiceAnswer& s : a.services) usd += s.usd_alone;
  return usd;
}

/// ", price not known" if there is none.
std::string at_cost(double usd_per_hour) {
  return std::isfinite(usd_per_hour) ? fmt::format(" for {} USD/h", usd(usd_per_hour)) : ", price not known,";
}

// --- lines -----------------------------------------------------------------------------------------------------------

/// What is rented for all services, and its cost.
std::string headline(const ServicesAnswer& a) {
  const Assignment& joint = *a.joint;
  const std::size_t served = joint.chosen.size();
  std::string out = fmt::format("{} service{} on {}{}\n", served, served == 1 ? "" : "s", gpus_words(joint.gpus),
                                std::isfinite(joint.usd_per_hour)
                                    ? fmt::format(" for {} USD/h ({:.0f} USD per month)", usd(joint.usd_per_hour),
                                                  joint.usd_per_hour * kHoursPerMonth)
                                    : "; price not known");
  if (joint.paid_gpus > joint.gpus)
    out += fmt::format("  {:.0f} GPUs are paid for: instances are rented whole\n", joint.paid_gpus);
  const double saved = apart(a) - joint.usd_per_hour;
  if (served > 1 && std::abs(saved) > 0.005 * joint.usd_per_hour)
    out += fmt::format("  each service's fleet by itself would come to {} USD/h in all{}\n", usd(apart(a)),
                       saved < 0          ? ", but not within what they share"
                       : a.shared.empty() ? ""
                                          : ": instances are shared");
  if (!joint.proven) out += "  the cheapest of two million choices; there are more\n";
  if (!a.complete())
    out += fmt::format("  no fleet was found for {}: the following covers the other services\n", names(a, false));
  return out;
}

/// The common limits, and how much of each is used.
std::string limits_text(const ServicesAnswer& a) {
  const SharedLimits& limits = a.spec.limits;
  std::string out;
  if (a.joint) {
    out += fmt::format("  {} of at most {}\n", gpus_words(a.joint->gpus), limits.max_gpus);
    if (limits.max_usd_per_hour)
      out += fmt::format("  {} USD/h of at most {}\n", usd(a.joint->usd_per_hour), usd(*limits.max_usd_per_hour));
    if (limits.max_watts)
      out += fmt::format("  {} W on average, 95 % confident below {} W, of at most {} W\n",
                         significant(a.power().value, 3), significant(a.power_bound().value, 3),
                         significant(*limits.max_watts, 3));
  }
  for (const BindingLimit& b : a.binds)
    out += fmt::format("  {}: without {}, {}{} would do\n", a.joint ? "what binds" : "what stands in the way", b.what,
                       gpus_words(b.gpus), at_cost(b.usd_per_hour));
  if (a.joint && a.binds.empty() && a.binds_proven && a.joint->proven && a.services.size() > 1)
    out += fmt::format("  among the fleets compared, no shared limit makes them {}\n",
                       a.spec.goal == PlanGoal::kGpus ? "larger" : "dearer");
  return out;
}

/// The objective that is nearest to its limit.
std::string tightest(const PlannedDeployment& p) {
  const Verdict* worst = nullptr;
  for (const Verdict& v : p.result.verdicts) {
    if (worst == nullptr || v.margin() < worst->margin()) worst = &v;
  }
  if (worst == nullptr) return "-";
  return fmt::format("{} {} of {}", worst->objective.name(), human_time(worst->value.base()),
                     human_time(worst->objective.limit.base()));
}

VerdictTable services_table(const ServicesAnswer& a) {
  VerdictTable table{.columns = {"service", "load", "GPU", "GPUs", "fleet", "formats", "P", "USD/h", "nearest limit"},
                     .rows = {}};
  for (const ServiceAnswer& s : a.services) {
    if (s.answer.result.ranked.empty()) {
      table.rows.push_back({s.name, "-", "-", "-", "no fleet", "-", "-", "-", s.answer.result.advice.binds});
      continue;
    }
    const PlannedDeployment& p = fleet_of(s);
    table.rows.push_back({s.name, fmt::format("{} {}", significant(p.load, 3), unit_of(s.answer.result.kind)),
                          p.candidate.gpu, std::to_string(p.gpus()), fleet_layout(p), p.candidate.precision,
                          p.probability ? fmt::format("{:.0f} %", 100 * *p.probability) : std::string("-"),
                          usd(a.joint ? s.usd_per_hour : s.usd_alone), tightest(p)});
  }
  table.ranks = {0, 1, 0, 0, 0, 3, 0, 0, 2};
  return table;
}

/// One row per offer.
VerdictTable pools_table(const ServicesAnswer& a) {
  VerdictTable table{.columns = {"GPU", "used", "paid for", "at most", "USD/h per GPU", "instances of", "price"},
                     .rows = {},
                     .words = 1};
  for (const PoolUse& use : a.pools) {
    table.rows.push_back({use.pool.gpu, std::to_string(use.gpus), std::to_string(use.paid_gpus),
                          use.available ? std::to_string(*use.available) : "-", usd(use.pool.usd_per_gpu_hour),
                          std::to_string(use.pool.host), offer_words(use.quote)});
  }
  return table;
}

std::string instance_words(const ServicesAnswer& a, const Instance& instance) {
  std::vector<std::string> parts;
  for (const auto& [service, gpus] : instance.gpus)
    parts.push_back(fmt::format("{} of {}", gpus_words(gpus), a.services[service].name));
  return fmt::format("{} x {}: {}", a.pools[instance.pool].pool.host, a.pools[instance.pool].pool.gpu,
                     join(parts, ", "));
}

/// Instances with replicas of several services; equal ones share a line.
std::string shared_text(const ServicesAnswer& a) {
  std::vector<std::pair<std::string, int>> lines;
  for (const Instance& instance : a.shared) {
    const std::string words = instance_words(a, instance);
    const auto at = std::find_if(lines.begin(), lines.end(), [&](const auto& l) { return l.first == words; });
    if (at == lines.end()) {
      lines.emplace_back(words, 1);
    } else {
      ++at->second;
    }
  }
  std::string out;
  for (const auto& [words, count] : lines)
    out += fmt::format("  {} instance{} of {}\n", count, count == 1 ? "" : "s", words);
  return out;
}

VerdictTable growth_table(const ServicesAnswer& a) {
  VerdictTable table{.columns = {"month", "order by", "GPUs", "paid for", "USD/h"}, .rows = {}, .words = 1};
  int lead = 0;
  for (const ServiceAnswer& s : a.services) {
    if (s.answer.growth.empty()) continue;
    table.columns.push_back(s.name);
    lead = std::max(lead, s.answer.plan.growth->lead_months);
  }
  table.columns.emplace_back("");
  for (const ServicesStage& stage : a.growth) {
    std::vector<std::string> row{std::to_string(stage.month), order_by(stage.month, lead), std::to_string(stage.gpus),
                                 std::to_string(stage.paid_gpus), usd(stage.usd_per_hour)};
    for (const ServiceAnswer& s : a.services) {
      if (s.answer.growth.empty()) continue;
      PlannedDeployment p = fleet_of(s);
      for (const GrowthStage& g : s.answer.growth.front().stages) {
        if (g.month <= stage.month)
          p.replicas = g.fleet.replicas, p.prefill_replicas = g.fleet.prefill_replicas, p.spare = g.spare;
      }
      row.push_back(fleet_layout(p));
    }
    row.push_back(stage.beyond.empty() ? "" : "beyond " + join(stage.beyond, ", "));
    table.rows.push_back(std::move(row));
  }
  return table;
}

// --- launch ----------------------------------------------------------------------------------------------------------

/// The GPUs of each replica of the service on instances shared with other services.
std::string shared_comments(const ServicesAnswer& a, std::size_t service, const std::string& form) {
  if (form == "kubernetes")
    return fmt::format("# in a namespace of its own: kubectl apply -n {}\n", a.services[service].name);
  const Candidate& fleet = fleet_of(a.services[service]).candidate;
  std::string out;
  for (const Instance& instance : a.shared) {
    std::vector<std::string> others;
    for (const auto& [other, gpus] : instance.gpus) {
      if (other != service) others.push_back(fmt::format("{} ({})", a.services[other].name, gpus_words(gpus)));
    }
    std::string lines;
    const std::vector<int> first = first_gpus(instance);
    for (std::size_t i = 0; i < first.size(); ++i) {
      const PackedReplica& replica = instance.replicas[i];
      if (replica.service != service) continue;
      std::vector<std::string> own;
      for (int gpu = first[i]; gpu < first[i] + replica.gpus; ++gpu) own.push_back(std::to_string(gpu));
      const bool prefill = replica.part == kPrefillPart;
      const Architecture architecture = (prefill ? fleet.prefill() : *fleet.scenario.deployment).gpu.architecture;
      lines += fmt::format("#   {}{}_VISIBLE_DEVICES={} and a --port of its own\n",
                           !fleet.disaggregated() ? ""
                           : prefill              ? "prefill worker: "
                                                  : "decode worker: ",
                           traits_of(architecture).matrix_units == MatrixUnits::kMfma ? "HIP" : "CUDA", join(own, ","));
    }
    if (lines.empty()) continue;
    const GpuPool& pool = a.pools[instance.pool].pool;
    out += fmt::format("# on an instance of {} x {} with {}:\n{}", pool.host, pool.gpu, join(others, ", "), lines);
  }
  return out;
}

Launch launch_of_service(const ServicesAnswer& a, std::size_t i, const std::string& engine, const std::string& form) {
  const ServiceAnswer& s = a.services[i];
  Launch out = engine.empty() ? launch_of(s.answer) : Launch{.command = launch_of(s.answer, engine, form).command};
  if (!out.command.empty() && a.services.size() > 1)
    out.command = fmt::format("# service {}\n", s.name) + shared_comments(a, i, form) + out.command;
  return out;
}

ResultVerdict services_verdict(const ServicesAnswer& a) {
  ResultVerdict out;
  out.add("", a.joint ? headline(a) + limits_text(a) : "no deployment: " + no_services_plan(a) + "\n" + limits_text(a));
  out.add("", services_table(a));
  if (!a.pools.empty()) out.add("what is bought", pools_table(a));
  if (const std::string text = shared_text(a); !text.empty()) out.add("instances that services share", text);
  if (!a.growth.empty()) out.add("as the loads grow", growth_table(a));
  for (std::size_t i = 0; i < a.services.size(); ++i) {
    const ServiceAnswer& s = a.services[i];
    std::string lines = outcome_text(s.answer);
    for (const std::string& note : s.answer.result.notes) lines += note + "\n";
    out.add(s.name + ":", lines);
  }
  if (!a.joint) return out;
  for (std::size_t i = 0; i < a.services.size(); ++i) {
    if (!has_fleet(a, a.services[i])) continue;
    const Launch launch = launch_of_service(a, i, "", "shell");
    const std::string title = "to launch " + a.services[i].name;
    if (!launch.command.empty()) out.add(title, launch.command).command = true;
    if (launch.command.empty() && !launch.reason.empty()) out.add("", "no launch command: " + launch.reason);
  }
  return out;
}

// --- JSON ------------------------------------------------------------------------------------------------------------

Json service_json(const ServicesAnswer& a, std::size_t i) {
  const ServiceAnswer& s = a.services[i];
  Json out{{"name", s.name}, {"fleet_found", has_fleet(a, s)}, {"fleets_weighed", s.options}};
  if (!s.answer.result.ranked.empty()) {
    const PlannedDeployment& p = fleet_of(s);
    const Deployment& d = *p.candidate.scenario.deployment;
    out.update({{"model", d.model.name},
                {"engine", d.engine.name},
                {"gpu", p.candidate.gpu},
                {"layout", layout_of(p.candidate)},
                {"formats", p.candidate.precision},
                {"gpus", p.gpus()},
                {"replicas", p.replicas},
                {"prefill_replicas", p.prefill_replicas},
                {"spare_replicas", p.spare},
                {"load", p.load},
                {"load_unit", unit_of(s.answer.result.kind)},
                {"probability", p.probability ? Json(*p.probability) : Json()},
                {"usd_per_hour", a.joint ? Json(s.usd_per_hour) : Json()},
                {"usd_per_hour_alone", s.usd_alone}});
  }
  out["plan"] = plan_json(s.answer);
  return out;
}

Json pools_json(const ServicesAnswer& a) {
  Json out = Json::array();
  for (const PoolUse& use : a.pools)
    out.push_back({{"gpu", use.pool.gpu},
                   {"tier", use.quote.tier},
                   {"provider", use.quote.provider},
                   {"date", use.quote.date},
                   {"checked", use.quote.checked},
                   {"usd_per_gpu_hour", use.pool.usd_per_gpu_hour},
                   {"gpus_per_instance", use.pool.host},
                   {"gpus", use.gpus},
                   {"paid_gpus", use.paid_gpus},
                   {"available", use.available ? Json(*use.available) : Json()}});
  return out;
}

Json shared_json(const ServicesAnswer& a) {
  Json out = Json::array();
  for (const Instance& instance : a.shared) {
    Json within = Json::array();
    for (const auto& [service, gpus] : instance.gpus)
      within.push_back({{"name", a.services[service].name}, {"gpus", gpus}});
    out.push_back({{"gpu", a.pools[instance.pool].pool.gpu},
                   {"gpus_per_instance", a.pools[instance.pool].pool.host},
                   {"services", std::move(within)}});
  }
  return out;
}

Json growth_json(const ServicesAnswer& a) {
  Json out = Json::array();
  for (const ServicesStage& stage : a.growth)
    out.push_back({{"month", stage.month},
                   {"gpus", stage.gpus},
                   {"paid_gpus", stage.paid_gpus},
                   {"usd_per_hour", stage.usd_per_hour},
                   {"beyond", stage.beyond}});
  return out;
}

}  // namespace

Json services_json(const ServicesAnswer& a) {
  const SharedLimits& limits = a.spec.limits;
  Json out = result_head(ResultKind::kServicesPlan);
  out.update({{"roofcast_version", ROOFCAST_VERSION}, {"goal", name_of(a.spec.goal)}, {"complete", a.complete()}});
  out["limits"] = {{"max_gpus", limits.max_gpus},
                   {"max_cost_usd_per_hour", limits.max_usd_per_hour ? Json(*limits.max_usd_per_hour) : Json()},
                   {"max_power_watts", limits.max_watts ? Json(*limits.max_watts) : Json()}};
  if (a.joint) {
    out["total"] = {{"gpus", a.joint->gpus},
                    {"paid_gpus", a.joint->paid_gpus},
                    {"usd_per_hour", a.joint->usd_per_hour},
                    {"usd_per_hour_apart", apart(a)},
                    {"mean_power_watts", a.power().value},
                    {"mean_power_watts_high", a.power_bound().value},
                    {"proven_cheapest", a.joint->proven}};
  }
  out["services"] = Json::array();
  for (std::size_t i = 0; i < a.services.size(); ++i) out["services"].push_back(service_json(a, i));
  out["bought"] = pools_json(a);
  out["shared_instances"] = shared_json(a);
  out["binding_limits"] = Json::array();
  for (const BindingLimit& b : a.binds)
    out["binding_limits"].push_back({{"limit", b.what}, {"gpus", b.gpus}, {"usd_per_hour", b.usd_per_hour}});
  if (!a.growth.empty()) out["growth"] = growth_json(a);
  out["verdict"] = verdict_json(services_verdict(a));
  return out;
}

std::string services_report(const ServicesAnswer& a, const std::string& format, bool wide, const Json& question) {
  if (format == "json") return result_text(services_json(a), question);
  if (format == "csv") {
    Json rows = services_json(a)["services"];
    for (Json& row : rows) row.erase("plan");
    return records_csv(rows);
  }
  return verdict_text(services_verdict(a), wide);
}

std::string no_services_plan(const ServicesAnswer& a) {
  if (a.complete()) return "";
  const std::string without = names(a, false);
  if (!without.empty()) return fmt::format("no fleet meets the objectives of {}", without);
  if (!a.decided)
    return "each service has a fleet; whether they fit together is not decided: there are more than two million "
           "choices, "
           "and none of those tried does";
  std::vector<std::string> limits;
  for (const BindingLimit& b : a.binds) {
    if (b.all) return "each service has a fleet, but together they fit only with all limits lifted";
    limits.push_back(b.what);
  }
  return fmt::format("each service has a fleet, but together they do not fit{}",
                     limits.empty() ? "" : " within " + join(limits, ", "));
}

std::string services_launch(const ServicesAnswer& a, const std::string& engine, const std::string& form) {
  std::string out;
  for (std::size_t i = 0; i < a.services.size(); ++i) {
    if (!has_fleet(a, a.services[i])) continue;
    const std::string& planned = fleet_of(a.services[i]).candidate.scenario.deployment->engine.name;
    if (planned != engine)
      throw ConfigError(fmt::format("--emit: the plan of '{}' is for {}; --engine {} plans all for the other",
                                    a.services[i].name, planned, engine));
    out += (out.empty() ? "" : form == "kubernetes" ? "---\n" : "\n") + launch_of_service(a, i, engine, form).command;
  }
  return out;
}

}  // namespace roofcast::reports
