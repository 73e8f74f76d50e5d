#include "sim/plan/search/fleet_plan.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/config_node.h"
#include "sim/plan/search/plan_answer.h"
#include "tests/sim/serve/temporary_file.h"

using namespace roofcast;

namespace {

/// Twenty minutes for a day, so that a test is quick; the cold start shrinks with it.
ConfigTree plan_tree(const std::string& more = "") {
  return parse_config_text(
      fmt::format("{{model: llama-3.1-8b, engine: {{name: vllm, start_time: 2 s}}, router: least_loaded, workload: {{"
                  "arrivals: {{process: poisson, rate: 30 /s, profile: [1, 0, 4, 3], profile_period: 20 min}}, "
                  "prompt_tokens: 1024, output_tokens: 64}}, objectives: {{ttft_p99: 2 s, tpot_p99: 60 ms}}, "
                  "search: {{gpus: [h100-sxm], max_gpus: 8, tp: [1]}}{}}}",
                  more),
      "plan");
}

struct Planned {
  PlanResult result;
  FleetPlan fleet;
};

Planned plan_of(const ConfigTree& tree, double confidence = 0) {
  const auto day = diurnal_plan(tree);
  REQUIRE(day);
  Planned out;
  PlanSpec plan = parse_plan(day->peak);
  plan.confidence = confidence;
  out.result = search_capacity(plan, {});
  REQUIRE_FALSE(out.result.ranked.empty());
  out.fleet = plan_fleet(plan, *day, out.result);
  return out;
}

}  // namespace

TEST_CASE("fleet plan: the peak of a profile, and the day it stands for") {
  const auto day = diurnal_plan(plan_tree());
  REQUIRE(day);
  CHECK(day->mean == 30);
  CHECK(day->highest == doctest::Approx(60));  // 4 of a mean of 2
  CHECK(*day->day.duration == Seconds(1200));
  const PlanSpec peak = parse_plan(day->peak);
  const Candidates candidates = read_candidates(peak, Fidelity::kCalibrated);
  CHECK(candidates.kept.front().scenario.workload->arrivals.rate.base() == doctest::Approx(60));
  CHECK(candidates.kept.front().scenario.workload->arrivals.profile.empty());
  CHECK_FALSE(diurnal_plan(parse_config_text("{workload: azure-2023-conversation}", "plan")));
  CHECK_FALSE(diurnal_plan(parse_config_text("{model: llama-3.1-8b}", "plan")));
}

TEST_CASE("fleet plan: replicas by slice, and what the day costs against the peak's fleet") {
  const Planned p = plan_of(plan_tree());
  const FleetPlan& f = p.fleet;
  REQUIRE(f.slices.size() == 4);
  const std::vector<double> rates{15, 0, 60, 45};
  std::int64_t completed = 0;
  double replica_seconds = 0, scheduled = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const FleetSlice& s = f.slices[i];
    CHECK(s.rate == doctest::Approx(rates[i]));
    CHECK((s.to - s.from) == Seconds(300));
    completed += s.completed;
    replica_seconds += 300 * s.mean;
    scheduled += 300.0 * s.needed;
    if (i > 0) scheduled += std::max(0, s.needed - f.slices[i - 1].needed) * f.cold_start.base();
  }
  scheduled += std::max(0, f.slices[0].needed - f.slices[3].needed) * f.cold_start.base();
  CHECK(f.slices[1].needed == 0);
  CHECK(f.slices[0].needed < f.slices[2].needed);
  CHECK(f.slices[3].needed <= f.slices[2].needed);
  CHECK(f.slices[2].needed == p.result.ranked.front().replicas);
  CHECK(completed == f.metrics.completed);
  CHECK(f.slices[1].completed == 0);
  CHECK(f.slices[2].completed == doctest::Approx(60 * 300).epsilon(0.03));
  CHECK(f.fixed.replica_hours == doctest::Approx(p.result.ranked.front().replicas / 3.0));
  CHECK(f.scheduled.replica_hours == doctest::Approx(scheduled / 3600));
  CHECK(f.scheduled.usd < f.fixed.usd);
  // what the slices saw is what is paid for, but for draining ends and what runs past the last slice
  CHECK(f.scaled.replica_hours == doctest::Approx(replica_seconds / 3600).epsilon(0.02));
  CHECK(f.cold_start.base() ==
        doctest::Approx(2 + 16.06e9 / 2e9).epsilon(0.01));  // 8.03 B weights of 2 bytes at 2 GB/s
  if (f.met) {
    for (const Verdict& v : f.verdicts) CHECK(v.upper <= v.objective.limit);
  }
}

TEST_CASE("fleet plan: instances are paid for whole, and the answer is the deployment whose day it is") {
  const ConfigTree tree = plan_tree(
      ", price: {tier: owned, usd_per_gpu: 35040, years: 4, host: 4}");  // 1 USD/h for each hour of four years
  const PlanAnswer a = answer_plan(tree, {}, PlanDetail::kAll);
  REQUIRE(a.fleet);
  CHECK(a.fleet->candidate == a.result.ranked.front().candidate.index);
  const double usd = least_gpu_price(*a.result.ranked.front().candidate.scenario.deployment).value;
  // One to four replicas take a host of four GPUs; none takes none.
  double hours = 0;
  for (const FleetSlice& s : a.fleet->slices) {
    CHECK(s.needed <= 4);
    hours += s.needed > 0 ? 1.0 / 12 : 0;
  }
  CHECK(a.fleet->fixed.usd == doctest::Approx(4 * usd / 3));
  CHECK(a.fleet->scheduled.usd >= doctest::Approx(4 * usd * hours));
  CHECK(a.fleet->scheduled.usd <= 4 * usd * (hours + a.fleet->cold_start.in(kHour)) * (1 + 1e-9));
  CHECK(a.fleet->scaled.usd >= a.fleet->scaled.replica_hours * usd);
  CHECK(a.fleet->scaled.usd <= doctest::Approx(8 * usd / 3));  // max_gpus
}

TEST_CASE("fleet plan: a plan's own autoscaler is taken as it is") {
  const Planned p = plan_of(plan_tree(", autoscaling: {min: 2, max: 3, policy: utilization, target: 0.05}"));
  CHECK(p.fleet.scaling.policy == ScalingPolicy::kUtilization);
  CHECK(p.fleet.scaling.target == 0.05);
  for (const FleetSlice& s : p.fleet.slices) {
    CHECK(s.most <= 3);
    CHECK(s.most >= 2);
  }
}

namespace {

/// Twelve minutes: 4 requests a second, for the middle four minutes 24, all the same.
std::string trace_text() {
  std::string out = "arrival_s,prompt_tokens,output_tokens\n";
  for (double t = 0; t < 720; t += t >= 240 && t < 480 ? 1.0 / 24 : 0.25) out += fmt::format("{},1024,64\n", t);
  return out;
}

ConfigTree trace_plan(const std::string& path, const std::string& arrivals = "", const std::string& search = "") {
  return parse_config_text(
      fmt::format("{{model: llama-3.1-8b, engine: {{name: vllm, start_time: 2 s}}, router: least_loaded, workload: {{"
                  "arrivals: {{process: trace, file: '{}'{}}}}}, objectives: {{ttft_p99: 2 s, tpot_p99: 30 ms}}, "
                  "search: {{gpus: [l40s], max_gpus: 16, tp: [1]{}}}}}",
                  path, arrivals, search),
      "plan");
}

}  // namespace

TEST_CASE("fleet plan: a trace by slices, each played with its own requests") {
  const TemporaryFile file("day.csv", trace_text());
  PlanSpec plan = parse_plan(trace_plan(file.path(), "", ", slice: 4 min"));
  plan.confidence = 0;
  const auto day = recorded_day(plan);
  REQUIRE(day);
  REQUIRE(day->slices.size() == 3);
  CHECK(day->slices[0].rate == doctest::Approx(4));
  CHECK(day->slices[1].rate == doctest::Approx(24).epsilon(0.001));
  CHECK(day->slices[2].rate == doctest::Approx(4).epsilon(0.01));
  CHECK(day->highest == day->slices[1].rate);
  CHECK(day->slices[2].prompt_tokens == 1024);
  CHECK(day->slices[2].output_tokens == 64);
  CHECK(day->length.base() == doctest::Approx(720).epsilon(0.001));
  PlanResult result = search_capacity(plan, {});
  REQUIRE_FALSE(result.ranked.empty());
  CHECK(result.kind == LoadKind::kPace);
  const FleetPlan fleet = plan_fleet(plan, *day, result);
  const int all = result.ranked.front().replicas;
  CHECK(fleet.slices[1].needed == all);
  CHECK(fleet.slices[0].needed < all);
  CHECK(fleet.slices[0].needed == fleet.slices[2].needed);
  CHECK(fleet.metrics.completed == 240 * (4 + 24 + 4));
  CHECK(fleet.fixed.replica_hours == doctest::Approx(all * 0.2).epsilon(0.001));
  // What stands at the beginning starts nothing; the middle's start a cold start ahead.
  const double more = fleet.slices[1].needed - fleet.slices[0].needed;
  const double seconds = 240.0 * (2 * fleet.slices[0].needed + all) + more * fleet.cold_start.base();
  CHECK(fleet.scheduled.replica_hours == doctest::Approx(seconds / 3600).epsilon(0.001));
}

TEST_CASE("fleet plan: slices suit a trace's length, and one slice is no day") {
  const TemporaryFile file("day.csv", trace_text());
  const auto day_of = [&](const std::string& arrivals, const std::string& search) {
    return recorded_day(parse_plan(trace_plan(file.path(), arrivals, search)));
  };
  CHECK(day_of("", "")->slices.size() == 12);                    // 12 min: of a minute each
  CHECK(day_of(", rate_scale: 0.1", "")->slices.size() == 12);   // 2 h: of ten minutes
  CHECK(day_of(", rate_scale: 0.01", "")->slices.size() == 20);  // 20 h: of an hour
  CHECK(day_of(", rate_scale: 2", "")->highest == doctest::Approx(48).epsilon(0.001));
  CHECK(day_of(", loop: 2", ", slice: 12 min")->slices.size() == 2);
  CHECK_FALSE(day_of("", ", slice: 12 min"));
  CHECK_FALSE(day_of("", ", goal: throughput"));
  CHECK_FALSE(day_of("", ", modes: [aggregated, disaggregated]"));
  CHECK_THROWS_AS(day_of(", rate_scale: 0.0001", ", slice: 1 s"), ConfigError);
}

TEST_CASE("fleet plan: ranked by the cheapest day, and the autoscaled one counts only where it meets the objectives") {
  FleetPlan plan;
  plan.fixed.usd = 3, plan.scheduled.usd = 2, plan.scaled.usd = 1;
  CHECK(plan.cheapest_usd() == 2);
  plan.met = true;
  CHECK(plan.cheapest_usd() == 1);
  plan.scaled.usd = 9;
  CHECK(plan.cheapest_usd() == 2);
  plan.scheduled.usd = 4;  // cold starts
  CHECK(plan.cheapest_usd() == 3);
}

TEST_CASE("fleet plan: with confidence the day's slices need as many replicas or more") {
  const Planned likely = plan_of(plan_tree()), sure = plan_of(plan_tree(), 0.9);
  CHECK(likely.fleet.confidence == 0);
  CHECK(sure.fleet.confidence == 0.9);
  REQUIRE(sure.fleet.slices.size() == likely.fleet.slices.size());
  int more = 0;
  for (std::size_t i = 0; i < sure.fleet.slices.size(); ++i) {
    CHECK(sure.fleet.slices[i].needed >= likely.fleet.slices[i].needed);
    more += sure.fleet.slices[i].needed - likely.fleet.slices[i].needed;
  }
  CHECK(more > 0);
  CHECK(sure.fleet.fixed.usd >= likely.fleet.fixed.usd);
}
