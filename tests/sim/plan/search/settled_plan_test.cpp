// One verdict: what a plan's headline, its day, its growth and its probabilities say of the same fleet.
#include <algorithm>
#include <tuple>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "hw/gpu_spec.h"
#include "sim/plan/search/objective_budget.h"
#include "sim/plan/search/plan_answer.h"
#include "sim/plan/search/risk.h"
#include "sim/plan/search/services.h"
#include "sim/step/deployment.h"

using namespace roofcast;

namespace {

PlanAnswer answer(const std::string& text, PlanDetail detail = PlanDetail::kAll) {
  return answer_plan(parse_config_text(text, "plan.yaml"), {}, detail);
}

/// A chat with a limit of its own, and documents; 200 requests in all.
std::string tenants(const std::string& chat_ttft, const std::string& search = "") {
  return fmt::format(
      "{{model: llama-3.1-8b, engine: vllm, workload: {{requests: 200, clients: [{{name: chat, arrivals: {{process: "
      "poisson, rate: 3 /s}}, prompt_tokens: 400, output_tokens: 40, objectives: {{ttft_p90: {}}}}}, {{name: "
      "documents, "
      "arrivals: {{process: poisson, rate: 1 /s}}, prompt_tokens: 4000, output_tokens: 40}}]}}, objectives: "
      "{{ttft_p90: "
      "5 s}}, search: {{gpus: [h100-sxm], max_gpus: 4, tp: [1]{}}}}}",
      chat_ttft, search);
}

std::string chat(double rate, const std::string& search) {
  return fmt::format(
      "{{model: llama-3.1-8b, workload: {{arrivals: {{process: poisson, rate: {} /s}}, prompt_tokens: 512, "
      "output_tokens: 64}}, objectives: {{ttft_p90: 500 ms, tpot_p90: 40 ms}}, search: {{{}}}}}",
      rate, search);
}

}  // namespace

TEST_CASE("a kind of clients: its objectives limit its own requests") {
  ServingMetrics m;
  m.completed = 3;
  m.clients.resize(2);
  m.ttft_ms.add(10), m.ttft_ms.add(10), m.ttft_ms.add(900);
  m.clients[0].ttft_ms.add(10), m.clients[0].ttft_ms.add(10), m.clients[1].ttft_ms.add(900);
  m.clients[0].completed = 2, m.clients[1].completed = 1;
  const Objective all{.percentile = -1, .limit = Seconds(0.5)};
  const Objective own{.percentile = -1, .limit = Seconds(0.5), .client = 1, .who = "documents"};
  CHECK(own.name() == "documents ttft_mean");
  CHECK(own.statistic() == all.name());
  CHECK(observed(all, m).base() == doctest::Approx(0.92 / 3));
  CHECK(observed(own, m).base() == doctest::Approx(0.9));
  CHECK(meets(all, m));
  CHECK_FALSE(meets(own, m));
  CHECK(requests_of(own, m) == 1);
  const std::vector<Objectives> limits = client_limits({all, own}, 2);
  REQUIRE(limits.size() == 2);
  CHECK(*limits[0].ttft == Seconds(0.5));  // of all requests, for it has none of its own
  CHECK(client_limits({all}, 2).empty());
}

TEST_CASE("a kind of clients: what its own requests may miss is counted for it alone") {
  const Objective own{.percentile = 50, .limit = Seconds(1), .client = 1, .who = "b"};
  ObjectiveBudgets budgets({own}, 1000, false, {990, 10});  // 5 of ten, and one more
  RequestRecord late;
  late.ttft = Seconds(2);
  for (int i = 0; i < 100; ++i) budgets.add(late);
  CHECK_FALSE(budgets.spent());
  late.client = 1;
  for (int i = 0; i < 6; ++i) budgets.add(late);
  CHECK_FALSE(budgets.spent());
  budgets.add(late);
  CHECK(budgets.spent());
}

TEST_CASE("a kind of clients: what fails counts, and without a request nothing is met") {
  Scenario s;
  const Objective own{.percentile = 50, .limit = Seconds(1), .client = 1, .who = "b"};
  s.objectives = {own};
  s.serving.client_objectives = client_limits(s.objectives, 2);
  ServingMetrics m;
  m.completed = 1000, m.good_requests = 1000;
  m.clients.resize(2);
  m.clients[0].completed = 1000, m.clients[0].good_requests = 1000;
  CHECK_FALSE(judge(s, m).within);  // none of b came
  CHECK_FALSE(meets(own, m));
  s.goodput = 0.9;
  CHECK_FALSE(judge(s, m).within);
  m.clients[1].completed = 50, m.clients[1].good_requests = 50, m.completed += 50, m.good_requests += 50;
  for (int i = 0; i < 50; ++i) m.clients[1].ttft_ms.add(10);
  CHECK(judge(s, m).within);
  m.clients[1].failed = 50, m.failed = 50;  // half of them, though 95 % of all requests are good
  CHECK(judge(s, m).goodput == doctest::Approx(0.5));
  CHECK_FALSE(judge(s, m).within);
}

TEST_CASE("a kind of clients: requests that are turned away are counted with it") {
  const Scenario s = read_scenario(
      parse_config_text(
          "{model: llama-3.1-8b, gpu: h100-sxm, engine: vllm, workload: {requests: 100, clients: [{name: chat, "
          "arrivals: {process: poisson, rate: 3 /s}, prompt_tokens: 400, output_tokens: 40, objectives: {itl_p90: "
          "50 ms}}, {name: too long, arrivals: {process: poisson, rate: 1 /s}, prompt_tokens: 200000, output_tokens: "
          "40}]}}",
          "scenario.yaml"),
      Fidelity::kCalibrated);
  CHECK(s.objectives.empty());  // gaps are not kept by kind: the limit is one of single requests
  REQUIRE(s.serving.client_objectives.size() == 2);
  CHECK(*s.serving.client_objectives[0].tpot == Seconds(0.05));
  PricerPool pricers;
  ServingOptions options = s.serving;
  options.pricer = pricers.factory();
  const ServingMetrics m = simulate(s.deployment, *s.workload, options);
  CHECK(m.failed > 0);
  CHECK(m.clients[0].failed == 0);
  CHECK(m.clients[1].failed == m.failed);
  CHECK(m.clients[0].completed + m.clients[1].failed == 100);
}

TEST_CASE("a mix of clients: the whole of a profile is played at every pace") {
  // All requests come in the last quarter of 40 s, which lasts 10 s; at twice the pace, of 20 s.
  const PlanSpec plan = parse_plan(parse_config_text(
      "{model: llama-3.1-8b, engine: vllm, workload: {duration: 40 s, clients: [{name: chat, arrivals: {process: "
      "poisson, rate: 3 /s, profile: [0, 0, 0, 1], profile_period: 40 s}, prompt_tokens: 100, output_tokens: 10}]}, "
      "objectives: {ttft_p90: 5 s}, search: {gpus: [h100-sxm], max_gpus: 1, tp: [1]}}",
      "plan.yaml"));
  const Scenario s = read_candidates(plan, Fidelity::kCalibrated).kept.at(0).scenario;
  PricerPool pricers;
  const auto requests = [&](double pace) {
    return test_load(s, {.load = pace, .fleet = {.replicas = 1}, .seed = 1, .more_requests = 1}, pricers).requests;
  };
  CHECK(requests(1) > 80);
  CHECK(requests(2) == requests(1));
}

TEST_CASE("a row that is raised keeps the limits of the search") {
  const std::string text = chat(20, "gpus: [{name: h100-sxm, price: 2 USD/h}], max_gpus: 3, tp: [1]");
  const PlanSpec plan = parse_plan(parse_config_text(text, "plan.yaml"));
  PlanResult result = search_capacity(plan);
  PlannedDeployment row = result.ranked.at(0);
  const int before = row.replicas;
  REQUIRE(before < 3);
  CHECK_FALSE(size_row_by_draws(row, 4, plan, *result.pricers));
  CHECK(row.replicas == before);
  CHECK(size_row_by_draws(row, 3, plan, *result.pricers));
  CHECK(row.replicas == 3);
  PlanSpec poor = plan;
  poor.max_power = Watts{row.power_bound().value * 0.9};
  PlannedDeployment again = result.ranked.at(0);
  CHECK_FALSE(size_row_by_draws(again, 3, poor, *result.pricers));
  CHECK(again.replicas == before);
}

TEST_CASE("advice: the limits of a workload that states its own can be relaxed") {
  const PlanAnswer none = answer(
      "{model: llama-3.1-8b, workload: {arrivals: {process: poisson, rate: 2 /s}, prompt_tokens: 512, output_tokens: "
      "64, objectives: {ttft_p90: 1 ms}}, search: {gpus: [h100-sxm], max_gpus: 1, tp: [1]}}",
      PlanDetail::kRanking);
  CHECK(none.result.ranked.empty());
  REQUIRE_FALSE(none.result.advice.relax.empty());
  CHECK(none.result.advice.relax.front().starts_with("ttft_p90 from 1 ms to "));
}

TEST_CASE("a plan judges the objectives of each kind of clients") {
  const PlanAnswer held = answer(tenants("1 s"), PlanDetail::kRanking);
  REQUIRE_FALSE(held.result.ranked.empty());
  const std::vector<Verdict>& verdicts = held.result.ranked.front().result.verdicts;
  REQUIRE(verdicts.size() == 2);
  CHECK(verdicts[1].objective.name() == "chat ttft_p90");
  CHECK(verdicts[1].value < verdicts[0].value);  // documents wait for their own prefill
  const PlanAnswer none = answer(tenants("1 ms"), PlanDetail::kRanking);
  CHECK(none.result.ranked.empty());
  CHECK(none.result.advice.binds == "chat ttft_p90");
  REQUIRE_FALSE(none.result.advice.relax.empty());
  CHECK(none.result.advice.relax.front().starts_with("chat ttft_p90 from 1 ms to "));
}

TEST_CASE("a plan under a goodput: each kind of clients is served as well as asked") {
  CHECK(answer(tenants("1 ms", ", goodput: 0.2"), PlanDetail::kRanking).result.ranked.empty());
  CHECK_FALSE(answer(tenants("1 s", ", goodput: 0.5"), PlanDetail::kRanking).result.ranked.empty());
}

TEST_CASE("a day and the ranking have one fleet, as sure as asked") {
  for (const int seed : {0, 1, 2}) {
    CAPTURE(seed);
    std::string text = tenants("400 ms");
    text.replace(text.find("max_gpus: 4"), 11, "max_gpus: 8");
    text.replace(text.find("requests: 200"), 13, "duration: 3 min");
    text.insert(1, fmt::format("seed: {}, ", seed));
    const PlanAnswer a = answer(text);
    REQUIRE(a.fleet);
    const PlannedDeployment& winner = a.result.ranked.front();
    CHECK(winner.replicas == a.fleet->static_replicas);
    for (const FleetSlice& s : a.fleet->slices) CHECK(s.needed <= winner.replicas);
    CHECK_FALSE(a.result.at_limit);
    REQUIRE(winner.probability);
    CHECK(*winner.probability >= 0.9 - 1e-9);
    CHECK(a.fleet->scaling.max == winner.candidate.most_replicas(winner.spare));
  }
}

TEST_CASE("throughput: the winner's whole fleet is loaded, not a replica with its share") {
  const std::string text = chat(1, "gpus: [h100-sxm], max_gpus: 8, tp: [1], goal: throughput");
  const PlanAnswer alone = answer(text, PlanDetail::kRanking), whole = answer(text);
  REQUIRE_FALSE(whole.result.ranked.empty());
  const PlannedDeployment &before = alone.result.ranked.front(), &after = whole.result.ranked.front();
  CHECK(before.tested.replicas == 1);
  CHECK(after.tested.replicas == after.replicas);
  CHECK(after.load > before.load);
  CHECK(*after.probability >= 0.9);
}

TEST_CASE("growth: the headline is the fleet that costs the least to the end") {
  const PlanAnswer a =
      answer(chat(40,
                  "gpus: [{name: h100-sxm, price: 2 USD/h}, {name: a100-sxm, price: 0.9 USD/h}, {name: "
                  "l40s, price: 1 USD/h}], max_gpus: 12, tp: [1], growth: {per_month: 0.2, months: 12}"));
  REQUIRE(a.growth.size() > 1);
  CHECK(a.growth.front().row == 0);
  for (const GrowthPath& path : a.growth) {
    if (path.outgrown == a.growth.front().outgrown) CHECK(a.growth.front().usd <= path.usd);
    CHECK(path.stages.front().gpus == a.result.ranked.at(path.row).gpus());
  }
}

TEST_CASE("ranking: of two fleets with one bill and as many GPUs the surer is first") {
  const PlanAnswer a =
      answer(chat(20, "gpus: [{name: h100-sxm, price: 2 USD/h}], max_gpus: 4, tp: [1]"), PlanDetail::kRanking);
  PlannedDeployment likely = a.result.ranked.front(), sure = likely;
  likely.probability = 0.9, sure.probability = 0.98;
  sure.result.worst_ratio = likely.result.worst_ratio + 0.1;
  CHECK(better(sure, likely, PlanGoal::kCost));
  CHECK_FALSE(better(likely, sure, PlanGoal::kCost));
}

TEST_CASE("how sure: what the winner is already costs no more") {
  for (const double rate : {20.0, 45.0, 90.0}) {
    CAPTURE(rate);
    const PlanAnswer a =
        answer(chat(rate, "gpus: [{name: h100-sxm, price: 2 USD/h}], max_gpus: 16, tp: [1], confidence: 0.8"));
    const PlannedDeployment& winner = a.result.ranked.front();
    REQUIRE(winner.in_all_draws);
    for (const SaferFleet& safer : winner.safer) {
      CAPTURE(safer.confidence);
      if (safer.confidence <= *winner.probability + 1e-9) {
        CHECK(safer.gpus <= winner.gpus());
      } else {
        CHECK(safer.gpus > winner.gpus());
      }
    }
  }
}

TEST_CASE("how sure: draws that end once they are decided decide as all draws do") {
  PlanSpec plan = parse_plan(parse_config_text(
      chat(120, "gpus: [{name: h100-sxm, price: 2 USD/h}], max_gpus: 16, tp: [1], confidence: 0.5"), "plan.yaml"));
  PlanResult result = search_capacity(plan);
  PlannedDeployment all = result.ranked.at(0);
  simulate_all_draws(all, plan, *result.pricers);
  REQUIRE(*all.probability > 0.05);
  REQUIRE(*all.probability < 0.999);  // else nothing is decided early
  for (const double confidence : {*all.probability - 0.025, *all.probability, *all.probability + 0.025, 1.0}) {
    CAPTURE(confidence);
    plan.confidence = confidence;
    PlannedDeployment decided = result.ranked.at(0);
    CHECK(simulate_draws_if_sure(decided, plan, *result.pricers) == (*all.probability >= confidence - 1e-9));
    CHECK(decided.in_all_draws == (*all.probability >= confidence - 1e-9));
    if (!decided.in_all_draws) continue;
    CHECK(*decided.probability == *all.probability);
    CHECK(decided.unsteady == all.unsteady);
    REQUIRE(decided.ranges.size() == all.ranges.size());
    for (std::size_t k = 0; k < all.ranges.size(); ++k) {
      CHECK(decided.ranges[k].low == all.ranges[k].low);
      CHECK(decided.ranges[k].high == all.ranges[k].high);
      CHECK(decided.ranges[k].missed == all.ranges[k].missed);
    }
  }
}

TEST_CASE("services: each gets a fleet that is as sure as asked") {
  // By the order of their harm enough draws hold with the fewest replicas of each; in all draws they do not.
  for (const auto& [first, second, confidence] :
       {std::tuple{107.1, 54.5, 0.8}, std::tuple{56.5, 44.4, 0.7}, std::tuple{91.4, 54.6, 0.8}}) {
    CAPTURE(first);
    const ServicesAnswer a = answer_services(
        parse_config_text(
            fmt::format("{{engine: vllm, services: [{{name: a, model: llama-3.1-8b, workload: {{arrivals: {{process: "
                        "poisson, rate: {} /s}}, prompt_tokens: 512, output_tokens: 64}}, objectives: {{ttft_p90: 500 "
                        "ms, tpot_p90: 40 ms}}}}, {{name: b, model: qwen3-14b, workload: {{arrivals: {{process: "
                        "poisson, rate: {} /s}}, prompt_tokens: 1000, output_tokens: 100}}, objectives: {{ttft_p90: "
                        "800 ms, tpot_p90: 40 ms}}}}], search: {{gpus: [h100-sxm], max_gpus: 64, tp: [1], confidence: "
                        "{}}}}}",
                        first, second, confidence),
            "plan.yaml"),
        {}, PlanDetail::kRanking);
    REQUIRE(a.complete());
    for (const ServiceAnswer& service : a.services) {
      const PlannedDeployment& fleet = service.answer.result.ranked.at(0);
      CHECK(fleet.in_all_draws);
      CHECK(*fleet.probability >= confidence - 1e-9);
    }
  }
}

TEST_CASE("a row that leaves the ranking once all draws are simulated takes no GPU away in silence") {
  // By the order of their harm 70 % of the draws hold on one H100; in all draws fewer do.
  const PlanAnswer a = answer(chat(57, "gpus: [h100-sxm, h200-sxm], max_gpus: 1, tp: [1], confidence: 0.7"));
  REQUIRE(a.result.ranked.size() == 1);
  CHECK(a.result.ranked.front().candidate.gpu == "h200-sxm");
  CHECK(std::count(a.result.notes.begin(), a.result.notes.end(),
                   "no row of h100-sxm: on the GPUs allowed it meets all objectives in fewer than 70 % of the draws") ==
        1);
}

TEST_CASE("services: of a limit that lets no fleet be as sure as asked, the answer says so") {
  // By the order of their harm 75 % of the draws hold on one GPU; in all draws fewer do.
  const ServicesAnswer a = answer_services(
      parse_config_text(
          "{engine: vllm@0.24, services: [{name: a, model: llama-3.1-8b, workload: {arrivals: {process: poisson, rate: "
          "55.3 /s}, prompt_tokens: 512, output_tokens: 64}, objectives: {ttft_p90: 500 ms, tpot_p90: 40 ms}}, {name: "
          "b, model: llama-3.1-8b, workload: {arrivals: {process: poisson, rate: 0.2 /s}, prompt_tokens: 100, "
          "output_tokens: 10}, objectives: {ttft_p90: 3 s, tpot_p90: 300 ms}}], search: {gpus: [{name: h100-sxm, "
          "available: 1}, {name: l4, available: 1}], max_gpus: 8, tp: [1], confidence: 0.75}}",
          "plan.yaml"),
      {}, PlanDetail::kAll);
  REQUIRE(a.complete());
  const PlanResult &unsure = a.services[0].answer.result, &sure = a.services[1].answer.result;
  CHECK(unsure.at_limit);
  CHECK(unsure.ranked.at(0).in_all_draws);
  CHECK(*unsure.ranked.at(0).probability < 0.75);
  CHECK(std::any_of(unsure.notes.begin(), unsure.notes.end(), [](const std::string& note) {
    return note.ends_with("fewer than the 75 % asked: the search allows no larger fleet");
  }));
  CHECK_FALSE(sure.at_limit);
  CHECK(*sure.ranked.at(0).probability >= 0.75);
}

namespace {

/// Service a: by the order of their harm 70 % of the draws hold on one H100; in all draws fewer do, and on one H200
/// enough do. Service c: a small load on an H100.
ServicesAnswer two_services(const std::string& h100) {
  return answer_services(
      parse_config_text(
          "{engine: vllm, services: [{name: a, model: llama-3.1-8b, workload: {arrivals: {process: poisson, rate: 57 "
          "/s}, prompt_tokens: 512, output_tokens: 64}, objectives: {ttft_p90: 500 ms, tpot_p90: 40 ms}}, {name: c, "
          "model: llama-3.1-8b, workload: {arrivals: {process: poisson, rate: 0.2 /s}, prompt_tokens: 100, "
          "output_tokens: 10}, objectives: {ttft_p90: 3 s, tpot_p90: 300 ms}, search: {gpus: [h100-sxm]}}], search: "
          "{gpus: [{name: h100-sxm, price: 2 USD/h" +
              h100 + "}, {name: h200-sxm, price: 3 USD/h}], max_gpus: 8, tp: [1], confidence: 0.7}}",
          "plan.yaml"),
      {}, PlanDetail::kRanking);
}

}  // namespace

TEST_CASE("services: a fleet that grows once all draws are simulated gives way to a cheaper one") {
  // One H100 would be 2 USD/h. It takes two to be sure, 4 USD/h, and one H200 is 3 USD/h.
  const ServicesAnswer a = two_services("");
  REQUIRE(a.complete());
  const PlannedDeployment& fleet = a.services[0].answer.result.ranked.at(0);
  CHECK(fleet.candidate.gpu == "h200-sxm");
  CHECK(fleet.replicas == 1);
  CHECK(*fleet.probability >= 0.7);
  CHECK(a.joint->usd_per_hour == doctest::Approx(5));
  CHECK(a.services[0].usd_alone == doctest::Approx(3));  // the same fleet by itself, and not 2
  CHECK(a.binds.empty());
}

TEST_CASE("services: a limit costs what fleets that are as sure as asked would save without it") {
  // Service c takes the only H100. A second one would not make service a cheaper: it needs two of them.
  const ServicesAnswer a = two_services(", available: 1");
  REQUIRE(a.complete());
  CHECK(a.joint->usd_per_hour == doctest::Approx(5));
  CHECK(a.binds.empty());
}

TEST_CASE("owned: GPUs that are there cost their electricity, what the plan says, and never more than renting") {
  const std::string rent = "gpus: [h100-sxm], tp: [1], max_gpus: 16";
  const auto planned = [&](const std::string& owned) {
    return answer(chat(120, rent + ", owned: {gpus: [{name: a100-sxm, available: 2" + owned), PlanDetail::kRanking);
  };
  const PlanAnswer all = answer(chat(120, rent), PlanDetail::kRanking), paid = planned("}]}");
  REQUIRE(paid.owned);
  const double usd = paid.owned->planned.usd_per_hour();
  const GpuSpec a100 = paid.owned->planned.candidate.scenario.deployment->gpu;
  CHECK(usd == doctest::Approx(2 * 0.0806 * a100.board_power.value / 1e3));
  CHECK(paid.owned->planned.bill().decode.quote->provider == "own, electricity alone");
  CHECK(usd + paid.result.ranked.front().usd_per_hour() <= all.result.ranked.front().usd_per_hour());
  const PlanAnswer bought = planned("}], price: {tier: owned, usd_per_gpu: 17520, years: 2}}");  // 1 USD/h
  REQUIRE(bought.owned);
  CHECK(bought.owned->planned.bill().decode.quote->provider == "own, without electricity");
  CHECK(bought.owned->planned.bill().decode.quote->per_gpu.value == doctest::Approx(1));
  const double most = all.result.ranked.front().usd_per_hour();  // less what the GPUs at hand take, too little remains
  const PlanAnswer no_rest = answer(chat(120, fmt::format("{}, max_cost: {:.6f} USD/h, owned: {{gpus: [{{name: "
                                                          "a100-sxm, available: 2, price: {:.6f} USD/h}}]}}",
                                                          rent, most + 1e-3, most * 0.49)),
                                    PlanDetail::kRanking);
  CHECK_FALSE(no_rest.owned);
  REQUIRE_FALSE(no_rest.result.ranked.empty());
  CHECK(no_rest.result.ranked.front().usd_per_hour() == doctest::Approx(most));
  const PlanAnswer dear = planned(", price: 50 USD/h}]}");
  CHECK_FALSE(dear.owned);
  CHECK(dear.result.ranked.front().usd_per_hour() == doctest::Approx(all.result.ranked.front().usd_per_hour()));
  CHECK(std::any_of(dear.result.notes.begin(), dear.result.notes.end(),
                    [](const std::string& note) { return note.starts_with("the owned GPUs stay idle"); }));
}

TEST_CASE("roles apart: on parts of hosts the link is what such instances have, not the host's NICs") {
  const auto link = [](const std::string& search) {
    const PlanSpec plan =
        parse_plan(parse_config_text(chat(5, "max_gpus: 4, tp: [1], modes: [disaggregated], " + search), "plan.yaml"));
    const Candidates candidates = read_candidates(plan, Fidelity::kCalibrated);
    REQUIRE_FALSE(candidates.kept.empty());
    return candidates.kept.front().scenario.serving.disaggregation->bandwidth.base();
  };
  CHECK(link("gpus: [h100-sxm]") == doctest::Approx(2.5e9));  // 20 Gbit/s for an instance of one GPU
  CHECK(link("gpus: [h100-sxm], transfer: {bandwidth: 10 GB/s}") == doctest::Approx(10e9));
  CHECK(link("gpus: [{name: h100-sxm, price: 2 USD/h}]") == 0);  // its NIC: whose it is, is not known
  CHECK(link("gpus: [h100-sxm], goal: gpus") == 0);              // hosts are bought whole
}

TEST_CASE("llama.cpp: a model is split by layers, one GPU after the other") {
  const PlanSpec plan = parse_plan(parse_config_text(
      "{model: llama-3.1-8b, engine: llama-cpp, workload: {arrivals: {process: poisson, rate: 0.1 /s}, prompt_tokens: "
      "100, output_tokens: 10}, search: {gpus: [l4], max_gpus: 2, precision: [gguf_q4_k_m]}}",
      "plan.yaml"));
  const Candidates candidates = read_candidates(plan, Fidelity::kCalibrated);
  REQUIRE(candidates.kept.size() == 2);
  for (const Candidate& c : candidates.kept) CHECK(c.scenario.deployment->sharding.tp == 1);
  CHECK(candidates.kept.back().scenario.deployment->sharding.pp == 2);
}

TEST_CASE("a load of a request a day is planned as any other") {
  const PlanAnswer a =
      answer(chat(1e-5, "gpus: [h100-sxm], max_gpus: 1, tp: [1], confidence: 0"), PlanDetail::kRanking);
  REQUIRE_FALSE(a.result.ranked.empty());
  CHECK(a.result.ranked.front().load == doctest::Approx(1e-5));
}
