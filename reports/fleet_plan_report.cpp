#include "reports/fleet_plan_report.h"

#include <cmath>

#include <fmt/format.h>

#include "reports/table.h"
#include "sim/plan/sample_value.h"

namespace roofcast::reports {
namespace {

using Json = nlohmann::ordered_json;

Json day_json(const FleetDay& day, const FleetDay& fixed) {
  return {{"replica_hours", day.replica_hours},
          {"usd", day.usd},
          {"of_static_cost", fixed.usd > 0 ? day.usd / fixed.usd : 1.0}};
}

/// Hours and minutes; seconds too where a slice ends between minutes.
std::string clock(Seconds at) {
  const auto seconds = static_cast<std::int64_t>(std::lround(at.base()));
  std::string out = fmt::format("{:02}:{:02}", seconds / 3600, seconds / 60 % 60);
  return seconds % 60 != 0 ? out + fmt::format(":{:02}", seconds % 60) : out;
}

constexpr double kDaySeconds = 86400;

/// Converts the cost of a period that is not one day; a trace of less than a day says nothing about the rest.
std::string days_text(const FleetPlan& plan) {
  const double days = plan.length.base() / kDaySeconds;
  if (!plan.recorded || std::abs(days - 1) < 0.01) return "";
  if (days < 1)
    return fmt::format("  the trace spans {} of a day's 24:00: costs cover that span\n", clock(plan.length));
  return fmt::format("  the trace spans {} days; by clock that is {} USD a day, static {}\n", significant(days, 3),
                     significant(plan.scheduled.usd / days, 4), significant(plan.fixed.usd / days, 4));
}

std::string day_text(const char* name, const FleetDay& day, const FleetPlan& plan, const std::string& how) {
  const double saved = plan.fixed.usd > 0 ? 100 * (1 - day.usd / plan.fixed.usd) : 0;
  return fmt::format(
      "  {:<10} {:>6} replica-hours, {:>6} USD{}, {}{}\n", name, significant(day.replica_hours, 4),
      significant(day.usd, 4),
      &day == &plan.fixed ? std::string() : fmt::format(" ({:.0f} % {})", std::abs(saved), saved < 0 ? "more" : "less"),
      how, day.price == plan.fixed.price ? std::string() : "; " + day.price);
}

VerdictTable slice_table(const FleetPlan& plan) {
  std::vector<std::string> header{"from", "requests/s", "needed", "autoscaled", "at most", "requests", "p99 TTFT"};
  if (plan.recorded) header.insert(header.begin() + 2, {"prompt", "output"});
  VerdictTable table{.columns = header, .rows = {}};
  for (const FleetSlice& s : plan.slices) {
    std::vector<std::string> row{clock(s.from),
                                 significant(s.rate, 3),
                                 std::to_string(s.needed),
                                 fmt::format("{:.2f}", s.mean),
                                 std::to_string(s.most),
                                 std::to_string(s.completed),
                                 s.completed > 0 ? human_time(s.ttft_ms.percentile(99) / 1e3) : std::string("-")};
    if (plan.recorded)
      row.insert(row.begin() + 2, {fmt::format("{:.0f}", s.prompt_tokens), fmt::format("{:.0f}", s.output_tokens)});
    table.rows.push_back(std::move(row));
  }
  return table;
}

Json autoscaling_json(const AutoscalingSpec& a) {
  return {{"min", a.min},
          {"max", a.max},
          {"policy", scaling_policies()[static_cast<std::size_t>(a.policy)].name},
          {"target", a.target},
          {"interval_s", a.interval.base()},
          {"scale_up_delay_s", a.scale_up_delay.base()},
          {"scale_down_delay_s", a.scale_down_delay.base()}};
}

Json hour_json(const FleetSlice& s, bool recorded) {
  Json out{{"start_s", s.from.base()}, {"end_s", s.to.base()},
           {"request_rate", s.rate},   {"replicas_needed", s.needed},
           {"replicas", s.mean},       {"replicas_most", s.most},
           {"completed", s.completed}, {"p99_ttft_ms", sample_value(s.ttft_ms, s.ttft_ms.percentile(99))}};
  if (recorded) {
    out["mean_prompt_tokens"] = s.prompt_tokens;
    out["mean_output_tokens"] = s.output_tokens;
  }
  return out;
}

}  // namespace

Json fleet_plan_json(const FleetPlan& plan) {
  Json out{{"deployment", plan.deployment},
           {"gpus_per_replica", plan.gpus_a_replica},
           {"cold_start_s", plan.cold_start.base()},
           {"length_s", plan.length.base()},
           {"static", day_json(plan.fixed, plan.fixed)},
           {"scheduled", day_json(plan.scheduled, plan.fixed)},
           {"autoscaled", day_json(plan.scaled, plan.fixed)}};
  out["autoscaling"] = autoscaling_json(plan.scaling);
  out["objectives_met"] = plan.met;
  out["completed"] = plan.metrics.completed;
  out["failed"] = plan.metrics.failed;
  out["replica_starts"] = plan.metrics.replica_starts;
  out["objectives"] = Json::array();
  for (const Verdict& v : plan.verdicts) {
    out["objectives"].push_back({{"objective", v.objective.name()},
                                 {"limit_ms", v.objective.limit.in(kMillisecond)},
                                 {"value_ms", v.value.in(kMillisecond)},
                                 {"met", v.met}});
  }
  if (plan.recorded)
    out["prefix_cache_hit_rate"] = plan.metrics.cached_tokens / std::max(plan.metrics.input_tokens, 1.0);
  out["hours"] = Json::array();
  for (const FleetSlice& s : plan.slices) out["hours"].push_back(hour_json(s, plan.recorded));
  return out;
}

void add_fleet_verdict(const FleetPlan& plan, ResultVerdict& verdict) {
  std::string out =
      fmt::format("over {} h: {}; {}, cold start {}{}\n", clock(plan.length), plan.deployment, plan.fixed.price,
                  human_time(plan.cold_start.base()),
                  plan.confidence > 0 ? fmt::format("\n  each {} holds with probability {:.0f} % or more",
                                                    plan.recorded ? "slice" : "hour", 100 * plan.confidence)
                                      : std::string());
  const AutoscalingSpec& a = plan.scaling;
  const char* all_day = !plan.recorded    ? "the busiest hour's replicas all day"
                        : plan.of_busiest ? "the busiest slice's replicas all the time"
                                          : "what holds the whole trace, all the time";
  out += day_text("static", plan.fixed, plan, all_day);
  out +=
      day_text("by clock", plan.scheduled, plan, fmt::format("what each {} needs", plan.recorded ? "slice" : "hour"));
  out += day_text("autoscaled", plan.scaled, plan,
                  fmt::format("{}-{} replicas, {} {}, {} starts", a.min, a.max,
                              scaling_policies()[static_cast<std::size_t>(a.policy)].name, plain_number(a.target, 3),
                              plan.metrics.replica_starts));
  for (const Verdict& v : plan.verdicts) {
    out += fmt::format("  {:<12} {} over the autoscaled day, limit {}: {}\n", v.objective.name(),
                       human_time(v.value.base()), human_time(v.objective.limit.base()), v.met ? "met" : "MISSED");
  }
  if (plan.metrics.cached_tokens > 0)
    out += fmt::format("  {:.0f} % of the prompt tokens were found cached\n",
                       100 * plan.metrics.cached_tokens / plan.metrics.input_tokens);
  out += days_text(plan);
  if (plan.metrics.failed > 0) out += fmt::format("  {} requests failed\n", plan.metrics.failed);
  verdict.add("", out);
  verdict.add("", slice_table(plan));
}

}  // namespace roofcast::reports
