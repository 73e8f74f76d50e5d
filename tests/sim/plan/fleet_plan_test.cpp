#include "sim/plan/fleet_plan.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/config_node.h"

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

Planned plan_of(const ConfigTree& tree) {
  const auto day = diurnal_plan(tree);
  REQUIRE(day);
  Planned out;
  out.result = search_capacity(parse_plan(day->peak), {});
  REQUIRE_FALSE(out.result.ranked.empty());
  out.fleet = plan_fleet(*day, out.result);
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

TEST_CASE("fleet plan: a plan's own autoscaler is taken as it is") {
  const Planned p = plan_of(plan_tree(", autoscaling: {min: 2, max: 3, policy: utilization, target: 0.05}"));
  CHECK(p.fleet.scaling.policy == ScalingPolicy::kUtilization);
  CHECK(p.fleet.scaling.target == 0.05);
  for (const FleetSlice& s : p.fleet.slices) {
    CHECK(s.most <= 3);
    CHECK(s.most >= 2);
  }
}
