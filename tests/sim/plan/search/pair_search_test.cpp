#include "sim/plan/search/pair_search.h"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "sim/plan/search/sensitivity.h"
#include "sim/plan/search/waiting.h"
#include "sim/step/deployment.h"

using namespace roofcast;

namespace {

PlanSpec plan_of(const std::string& text) { return parse_plan(parse_config_text(text, "plan.yaml")); }

const std::string kService = R"(
model: llama-3.1-8b
workload:
  arrivals: {process: poisson, rate: 20 /s}
  prompt_tokens: {distribution: fixed, value: 2000}
  output_tokens: {distribution: fixed, value: 100}
objectives: {ttft_mean: 200 ms, tpot_mean: 12 ms}
)";
const std::string kSpace =
    "search: {gpus: [l40s, h100-sxm], max_gpus: 4, tp: [1, 2], modes: [disaggregated], max_num_batched_tokens: "
    "[2048], transfer: {bandwidth: 50 GB/s}, ";

std::string fleet_of(const PlannedDeployment& p) {
  return p.candidate.gpu + " " + std::to_string(p.prefill_replicas) + " x tp " +
         std::to_string(p.candidate.prefill().sharding.tp) + " > " + std::to_string(p.replicas) + " x tp " +
         std::to_string(p.candidate.scenario.deployment->sharding.tp);
}

}  // namespace

TEST_CASE("waiting: one server is M/D/1, with more of them requests wait less") {
  // M/D/1 at 1/2: u / (2 (1 - u)) = 1/2 service time
  CHECK(shared_queue_wait(0.5, 1) == doctest::Approx(0.5));
  CHECK(round_robin_wait(0.5, 1) == doctest::Approx(0.5));
  // M/M/2 at 1/2: C = 1/3, wait (1/3) / (2 * 1/2) = 1/3; halved, times 1 + 0.5 (sqrt(14) - 2) / 16 = 1.05443: 0.17574
  CHECK(shared_queue_wait(0.5, 2) == doctest::Approx(0.17574).epsilon(1e-4));
  CHECK(shared_queue_wait(0, 2) == 0);
  CHECK(round_robin_wait(0, 2) == 0);
  // 0.5 / 2 exp(-2 * 0.5 * 0.25 * 2 / 1.5)
  CHECK(round_robin_wait(0.5, 2) == doctest::Approx(0.25 * std::exp(-1.0 / 3)));
  for (double u : {0.3, 0.6, 0.9}) {
    for (int c : {2, 5, 12}) {
      CHECK(shared_queue_wait(u, c) < shared_queue_wait(u, c - 1));
      CHECK(round_robin_wait(u, c) < round_robin_wait(u, c - 1));
    }
  }
  CHECK(utilization_within(0.5, 1, shared_queue_wait) == doctest::Approx(0.5));
}

TEST_CASE("pairs: pruning finds the winner of the exhaustive search") {
  for (const char* goal : {"cost", "gpus", "throughput"}) {
    const PlanSpec plan = plan_of(kService + kSpace + "goal: " + goal + "}");
    const PlanResult pruned =
                         search_capacity(plan, {.fidelity = Fidelity::kCalibrated, .prune = true, .confirm = false}),
                     all = search_capacity(plan, {.fidelity = Fidelity::kCalibrated, .prune = false, .confirm = false});
    INFO(goal);
    REQUIRE(!pruned.ranked.empty());
    REQUIRE(!all.ranked.empty());
    CHECK(pruned.simulations < all.simulations);
    CHECK(fleet_of(pruned.ranked.front()) == fleet_of(all.ranked.front()));
    const double best = score_of(all.ranked.front(), plan.goal);  // loads are told apart to 3 %
    CHECK(score_of(pruned.ranked.front(), plan.goal) == doctest::Approx(best).epsilon(0.03));
  }
}

TEST_CASE("pairs: no fleet that holds the load is cheaper than the winner") {
  const PlanSpec plan = plan_of(kService + kSpace + "goal: cost}");
  const PlanResult found = search_capacity(plan, {.fidelity = Fidelity::kCalibrated, .prune = true, .confirm = false});
  REQUIRE(!found.ranked.empty());
  double cheapest = std::numeric_limits<double>::infinity();
  PricerPool pricers;
  for (const Candidate& c : read_candidates(plan, Fidelity::kCalibrated).kept) {
    for (int p = 1; p <= 3; ++p) {
      for (int d = 1; d <= 3; ++d) {
        const Fleet fleet{d, p};
        if (!c.affords(fleet, 0) || c.usd_per_hour(fleet) >= cheapest) continue;
        if (test_load(c.scenario, {.load = 20, .fleet = fleet}, pricers).met) cheapest = c.usd_per_hour(fleet);
      }
    }
  }
  CHECK(found.ranked.front().usd_per_hour() == doctest::Approx(cheapest));
}

TEST_CASE("pairs: the winner holds under other seeds with ten times the requests") {
  const PlanSpec plan = plan_of(kService + kSpace + "goal: throughput}");
  const PlanResult found = search_capacity(plan);
  REQUIRE(!found.ranked.empty());
  const PlannedDeployment& w = found.ranked.front();
  CHECK(w.confirmed);
  PricerPool pricers;
  for (std::uint64_t seed : {7U, 4711U}) {
    const LoadResult again = test_load(
        w.candidate.scenario, {.load = w.load, .fleet = w.fleet(), .seed = seed, .more_requests = 10}, pricers);
    CHECK(again.stationary);
    for (const Verdict& v : again.verdicts) CHECK(v.value <= v.objective.limit);
  }
}

TEST_CASE("pairs: bounds stand on the right side of what a simulation shows") {
  const PlanSpec plan = plan_of(kService + kSpace + "goal: throughput}");
  PricerPool pricers;
  int checked = 0;
  for (const Candidate& c : read_candidates(plan, Fidelity::kCalibrated).kept) {
    const PairBounds bounds = pair_bounds(c, pricers);
    const LoadResult light = test_load(c.scenario, {.load = 0.1, .fleet = {1, 1}, .to_the_end = true}, pricers);
    CHECK(bounds.latencies().ttft.in(kMillisecond) <= light.metrics.ttft_ms.min());
    CHECK(bounds.latencies().tpot.in(kMillisecond) <= light.metrics.tpot_ms.min());
    for (const Fleet& fleet : {Fleet{1, 1}, Fleet{1, 2}, Fleet{2, 1}}) {
      const double most = bounds.requests_per_s(fleet);
      if (!(most > 0)) continue;
      CHECK_FALSE(test_load(c.scenario, {.load = most * 1.02, .fleet = fleet}, pricers).met);
      ++checked;
    }
  }
  CHECK(checked > 20);
}

TEST_CASE("pairs: mixed GPUs, roles of their own, counts of workers") {
  const PlanSpec any = plan_of(kService + kSpace + "goal: cost}");
  const auto count = [](const PlanSpec& plan) { return read_candidates(plan, Fidelity::kCalibrated).kept.size(); };
  // 2 GPUs x 2 layouts for each role
  CHECK(count(any) == 16);
  CHECK(count(plan_of(kService + kSpace + "prefill: {gpus: [h100-sxm]}, decode: {tp: [2]}}")) == 4);
  const PlanSpec one =
      plan_of(kService + kSpace + "goal: throughput, prefill: {workers: [1]}, decode: {workers: [2]}}");
  const PlanResult found = search_capacity(one);
  REQUIRE(!found.ranked.empty());
  for (const PlannedDeployment& p : found.ranked) CHECK((p.prefill_replicas == 1 && p.replicas == 2));
  for (const Candidate& c : read_candidates(any, Fidelity::kCalibrated).kept) {
    if (c.gpu != "l40s > h100-sxm") continue;
    const Bill bill = c.bill({3, 2});  // of instances that a replica fills
    CHECK(bill.usd_per_hour() == doctest::Approx(2 * c.prefill_gpus() * bill.prefill.quote->per_gpu.value +
                                                 3 * c.gpus() * bill.decode.quote->per_gpu.value));
  }
}

TEST_CASE("pairs: spares of both roles are paid for") {
  const PlanSpec plan = plan_of(
      kService +
      "search: {gpus: [h100-sxm], max_gpus: 8, tp: [1], modes: [disaggregated], transfer: {bandwidth: 50 GB/s}, goal: "
      "gpus, spare_replicas: 1}");
  const PlanResult found = search_capacity(plan);
  REQUIRE(!found.ranked.empty());
  const PlannedDeployment& w = found.ranked.front();
  CHECK(w.gpus() == w.replicas + w.prefill_replicas + 2);
}

TEST_CASE("pairs: users in a closed loop, and a batch at once") {
  const std::string lengths =
      "prompt_tokens: {distribution: fixed, value: 1000}, output_tokens: {distribution: fixed, value: 50}";
  const std::string space = "search: {gpus: [h100-sxm], max_gpus: 4, tp: [1], modes: [aggregated, disaggregated]";
  const PlanResult users =
      search_capacity(plan_of("model: llama-3.1-8b\nworkload: {arrivals: {process: closed_loop, concurrency: 32}, " +
                              lengths + "}\nobjectives: {ttft_p90: 1 s, tpot_p90: 20 ms}\n" + space + ", goal: cost}"));
  REQUIRE(!users.ranked.empty());
  CHECK(users.kind == LoadKind::kUsers);
  const PlanSpec turned = plan_of("model: llama-3.1-8b\nworkload: {arrivals: {process: closed_loop, concurrency: 1}, " +
                                  lengths + "}\nobjectives: {ttft_mean: 300 ms, tpot_mean: 10 ms}\n" +
                                  "search: {gpus: [h100-sxm], max_gpus: 4, tp: [1, 2], modes: [disaggregated], goal: "
                                  "throughput}");
  const PlanResult pruned =
                       search_capacity(turned, {.fidelity = Fidelity::kCalibrated, .prune = true, .confirm = false}),
                   all = search_capacity(turned, {.fidelity = Fidelity::kCalibrated, .prune = false, .confirm = false});
  REQUIRE(!pruned.ranked.empty());
  CHECK(pruned.simulations < all.simulations);
  CHECK(pruned.ranked.front().tokens_per_s_per_gpu() >= 0.95 * all.ranked.front().tokens_per_s_per_gpu());
  const PlanResult batch =
      search_capacity(plan_of("model: llama-3.1-8b\nworkload: {arrivals: {process: all_at_once}, " + lengths +
                              ", requests: 300}\n" + space + "}"));
  REQUIRE(batch.ranked.size() == 2);
  for (const PlannedDeployment& p : batch.ranked) CHECK(p.tokens_per_s_per_gpu() > 0);
}

TEST_CASE("pairs: the prices of input and output are those of the roles, and more of everything does not hurt") {
  const PlanSpec plan = plan_of(kService + kSpace + "goal: cost}");
  const PlanResult found = search_capacity(plan);
  REQUIRE(!found.ranked.empty());
  const PlannedDeployment& w = found.ranked.front();
  const TokenPrice price = token_price(w, plan);
  CHECK(price.input_share == doctest::Approx(w.bill().prefill.usd / w.usd_per_hour()));
  CHECK(price.joules_per_output_token > 0);
  for (const Sensitivity& s : sensitivities(w, *found.pricers).changes) CHECK(s.throughput_change > -0.02);
}

TEST_CASE("scenario: prefill and decode workers have an autoscaler each, and a cold start of their own weights") {
  const auto read = [](const std::string& decode, const std::string& prefill) {
    return read_scenario(
               parse_config_text("model: llama-3.1-8b\ngpu: h100-sxm\nparallelism: {tp: 2, replicas: 3}\n" + decode +
                                     "disaggregation: {prefill: {parallelism: {tp: 1, replicas: 5}" + prefill + "}}\n",
                                 "s.yaml"),
               Fidelity::kCalibrated)
        .serving.fleet;
  };
  const FleetSpec both = read("autoscaling: {min: 2, max: 4}\n", ", autoscaling: {max: 9, cold_start: 7 s}");
  CHECK(both.autoscaling->min == 2);
  CHECK(both.autoscaling->max == 4);
  CHECK(both.prefill_autoscaling->max == 9);
  CHECK(both.prefill_cold_start == Seconds(7));
  CHECK(both.cold_start > Seconds(60));
  const FleetSpec one = read("", ", autoscaling: {max: 9}");
  CHECK_FALSE(one.autoscaling);
  CHECK(one.prefill_autoscaling);
  // Each loads the model once; two GPUs have some parts of it twice.
  CHECK(one.prefill_cold_start->base() == doctest::Approx(one.cold_start.base()).epsilon(0.05));
  CHECK_FALSE(read("", "").scaled());
}

TEST_CASE("scenario: prefill workers of their own take what they do not say from the scenario") {
  const std::string text =
      "model: llama-3.1-8b\ngpu: h100-sxm\nengine: {name: sglang, max_num_batched_tokens: 4096}\nparallelism: {tp: 2, "
      "replicas: 3}\ndisaggregation: {prefill: {gpu: l40s, engine: {max_num_seqs: 7}, parallelism: {replicas: 5}}, "
      "bandwidth: 10 GB/s, latency: 2 ms}\nworkload: {arrivals: {process: poisson, rate: 4 /s}, prompt_tokens: "
      "{distribution: fixed, value: 500}, output_tokens: {distribution: fixed, value: 20}, requests: 50}\n";
  const Scenario s = read_scenario(parse_config_text(text, "s.yaml"), Fidelity::kCalibrated);
  REQUIRE(s.serving.disaggregation.has_value());
  const Disaggregation& split = *s.serving.disaggregation;
  CHECK(split.prefill->gpu.name == "l40s");
  CHECK(split.prefill->sharding.tp == 1);
  CHECK(split.prefill->engine.name == "sglang");
  CHECK(split.prefill->engine.max_num_seqs == 7);
  CHECK(split.prefill->engine.max_num_batched_tokens == 4096);
  CHECK(split.prefill_replicas == 5);
  CHECK(s.serving.replicas == 3);
  const ServingMetrics m = simulate(s.deployment, *s.workload, s.serving);
  CHECK(m.completed == 50);
  const FleetCost cost = fleet_cost(m, *s.deployment, 3, split);
  CHECK(cost.gpus == 11);
  CHECK(cost.usd_per_hour == doctest::Approx(5 * 0.99 + 6 * 3.99));  // RunPod has both
  CHECK(m.prefill_busy_seconds > 0);
  CHECK(m.prefill_busy_seconds < m.gpu_busy_seconds);
}
