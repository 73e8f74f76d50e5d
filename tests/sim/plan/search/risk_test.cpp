#include "sim/plan/search/risk.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/random.h"
#include "sim/plan/parallel.h"
#include "sim/plan/planned_spread.h"
#include "sim/plan/search/advice.h"
#include "sim/plan/search/fleet_size.h"
#include "sim/plan/search/plan_answer.h"
#include "sim/plan/search/spares.h"
#include "sim/plan/spec_cache.h"
#include "sim/step/deployment.h"

using namespace roofcast;

namespace {

PlanSpec plan_of(const std::string& text) { return parse_plan(parse_config_text(text, "plan.yaml")); }

std::string chat(const std::string& rate, const std::string& search) {
  return "model: llama-3.1-8b\nengine: vllm@0.24\nworkload:\n  arrivals: {process: poisson, rate: " + rate +
         " /s}\n  prompt_tokens: {distribution: fixed, value: 512}\n  output_tokens: {distribution: fixed, value: 64}\n"
         "objectives: {ttft_p90: 500 ms, tpot_p90: 40 ms}\nsearch: {gpus: [h100-sxm], max_gpus: 64, tp: [1]" +
         search + "}\n";
}

/// Specs that nobody chose for their answer: loads, lengths, limits, GPUs and models at random. Loads of many replicas,
/// for fleets are whole: where one replica more is half as much again, a fleet is surer than it was asked to be.
std::string made_up(Random& random, int i) {
  static constexpr std::array kGpus{"h100-sxm", "h200-sxm", "a100-sxm", "b200-sxm"};
  static constexpr std::array kModels{"llama-3.1-8b", "qwen3-14b", "qwen3-32b", "qwen3-30b-a3b"};
  const double prompt = 200 * std::exp(2.5 * random.uniform()), output = 50 * std::exp(1.6 * random.uniform());
  const double users = 1000 + 4000 * random.uniform();
  return fmt::format(
      "model: {}\nworkload:\n  arrivals: {{process: poisson, rate: {:.2f} /s}}\n  prompt_tokens: {{distribution: "
      "lognormal, mean: {:.0f}, p50: {:.0f}, max: 8192}}\n  output_tokens: {{distribution: fixed, value: {:.0f}}}\n"
      "objectives: {{ttft_p90: {:.0f} ms, tpot_p90: {:.0f} ms}}\nsearch: {{gpus: [{}], max_gpus: 1024, tp: [1, 2], "
      "precision: [bf16]}}\nseed: {}\n",
      kModels[static_cast<std::size_t>(random.uniform_integer(0, 3))], users * 100 / (prompt + 5 * output), prompt,
      0.8 * prompt, output, 400 + 1600 * random.uniform(), 25 + 50 * random.uniform(),
      kGpus[static_cast<std::size_t>(random.uniform_integer(0, 3))], i);
}

/// The share of the draws in which the fleet meets every objective: every draw simulated.
double probability_of(const PlannedDeployment& p, const PlanSpec& plan, const std::vector<TruthDraw>& draws,
                      PricerPool& pricers) {
  const Truths truths(p.candidate.scenario, p.result.metrics, p.tested.replicas, plan.load_uncertainty);
  std::atomic<int> held = 0;
  parallel_for_each_index(draws.size(), [&](std::size_t i) { held += holds_in(draws[i], truths, p, pricers) ? 1 : 0; });
  return held / static_cast<double>(draws.size());
}

}  // namespace

TEST_CASE("truths: draws are the same for every candidate, and their median is the forecast") {
  const std::vector<TruthDraw> draws = truth_draws(40, 7), again = truth_draws(40, 7);
  for (std::size_t i = 0; i < draws.size(); ++i) CHECK(draws[i].normals == again[i].normals);
  for (std::size_t d = 0; d < draws[0].normals.size(); ++d) {
    double sum = 0;
    for (const TruthDraw& draw : draws) sum += draw.normals[d];
    CHECK(std::abs(sum) < 1e-9);  // every slice once: symmetric
  }
}

TEST_CASE("risk: more of the fleet is paid for by those who want to be surer") {
  const PlanResult r = search_capacity(plan_of(chat("400", "")));
  REQUIRE(!r.ranked.empty());
  const PlannedDeployment& w = r.ranked.front();
  REQUIRE(w.probability);
  CHECK(*w.probability >= 0.9 - 1e-9);
  REQUIRE(w.safer.size() == 3);  // 50, 80, 95 %
  CHECK(w.safer[0].usd_per_hour <= w.safer[1].usd_per_hour);
  CHECK(w.safer[1].usd_per_hour <= w.usd_per_hour());
  CHECK(w.usd_per_hour() <= w.safer[2].usd_per_hour);
  const PlanResult forecast = search_capacity(plan_of(chat("400", ", confidence: 0")));
  CHECK(!forecast.ranked.front().probability);
  CHECK(forecast.ranked.front().gpus() <= w.gpus());
}

TEST_CASE("risk: what the forecast's best rules out is searched where that cannot be made sure") {
  // A prompt alone takes a tp 1 replica nearly all of the limit: no number of them is sure. The first wave of
  // candidates is of such, and tp 4 costs four times as much.
  const PlanSpec plan = plan_of(
      "engine: vllm@0.24\nmodel: llama-3.1-8b\nworkload: {arrivals: {process: poisson, rate: 0.5 /s}, prompt_tokens: "
      "4000, output_tokens: 64}\nobjectives: {ttft_mean: 150 ms}\nsearch: {gpus: [{name: h100-sxm, price: 2 USD/h}], "
      "max_gpus: 4, tp: [1, "
      "4], "
      "max_num_seqs: [64, 128, 256, 512]}");
  const PlanResult r = search_capacity(plan), all = search_capacity(plan, {.prune = false});
  REQUIRE(!r.ranked.empty());
  REQUIRE(!all.ranked.empty());
  CHECK(r.ranked.front().candidate.gpus() == 4);
  CHECK(*r.ranked.front().probability >= 0.9);
  CHECK(r.ranked.front().candidate.index == all.ranked.front().candidate.index);
  PlanSpec forecast = plan;
  forecast.confidence = 0;
  CHECK(search_capacity(forecast).ranked.at(0).candidate.gpus() == 1);
}

TEST_CASE("risk: bounds rule nothing out of less than an even chance") {
  const PlanSpec plan = plan_of(chat("1", ""));
  const Scenario s = read_candidates(plan, Fidelity::kCalibrated).kept.at(0).scenario;
  const std::vector<TruthDraw> draws = draws_of(plan, s);
  const LoadBounds hopeless{.requests_per_s = 1, .ttft = Seconds(5), .tpot = Seconds(0.4)};
  CHECK(!may_be_sure(s, hopeless, 0.9, draws));
  CHECK(!may_be_sure(s, hopeless, 0.5, draws));
  CHECK(may_be_sure(s, hopeless, 0.4, draws));
}

TEST_CASE("risk: no spread between two is faster than their bound") {
  const PlanSpec plan = plan_of(chat("1", ""));
  const Scenario s = read_candidates(plan, Fidelity::kCalibrated).kept.at(0).scenario;
  const SystemSpread none = planned_spread(*s.deployment, LoadRegime::kLight, {}),
                     all = planned_spread(*s.deployment, LoadRegime::kLight, {1, 1, 1});
  const auto at = [](const LogSpread& spread, double n) { return (n < 0 ? -spread.low : spread.high) / 1.645 * n; };
  for (const TruthDraw& draw : truth_draws(40, 7)) {
    const std::size_t system = draw.normals.size() - 4;
    const SystemFactors bound = fastest_factors(none, all, draw);
    for (const double first : {0.0, 0.3, 1.0}) {
      for (const double step : {0.0, 0.3, 1.0}) {
        const SystemSpread spread = planned_spread(*s.deployment, LoadRegime::kLight, {0, step, first});
        const double of_step = at(spread.tpot, draw.normals[system]);
        const auto rest = [](double a, double b) { return std::sqrt(std::max(0.0, a * a - b * b)); };
        const LogSpread prefill{std::max(spread.ttft.low, spread.tpot.low),
                                std::min(spread.ttft.high, spread.tpot.high)};
        const LogSpread more{-rest(spread.ttft.low, prefill.low), rest(spread.ttft.high, prefill.high)};
        CHECK(bound.step <= std::exp(of_step) * 1.001);
        CHECK(bound.first_token <=
              std::exp(at(prefill, draw.normals[system]) + at(more, draw.normals[system + 1])) * 1.001);
      }
    }
  }
}

TEST_CASE("advice: of a sure fleet beyond max_power the power binds, not an objective") {
  const double sure = search_capacity(plan_of(chat("800", ""))).ranked.at(0).power_bound().value,
               forecast = search_capacity(plan_of(chat("800", ", confidence: 0"))).ranked.at(0).power_bound().value;
  REQUIRE(sure > 1.02 * forecast);
  const PlanResult r = search_capacity(
      plan_of(chat("800", fmt::format(", max_power: {:.0f} W", (sure + forecast) / 2))), {.advise = true});
  REQUIRE(r.ranked.empty());
  REQUIRE(r.nearest);
  CHECK(r.nearest->probability.value_or(0) >= 0.9 - 1e-9);
  CHECK(r.advice.binds.starts_with("max_power ("));
}

TEST_CASE("risk: the ideal roofline has no interval") {
  const PlanSpec plan = plan_of(chat("20", ""));
  const PlanResult r = search_capacity(plan, {.fidelity = Fidelity::kIdeal});
  REQUIRE(!r.ranked.empty());
  CHECK(!r.ranked.front().probability);
  CHECK(std::isnan(range_of(r.ranked.front(), 0).low.base()));
  CHECK(std::isnan(range_of(r.ranked.front(), 0).high.base()));
}

TEST_CASE("risk: a load that is not known well takes more") {
  const int sure = search_capacity(plan_of(chat("400", ""))).ranked.at(0).gpus(),
            unsure = search_capacity(plan_of(chat("400", ", load_uncertainty: 0.3"))).ranked.at(0).gpus();
  CHECK(unsure > sure);
}

TEST_CASE("risk: constants of another vendor's GPU are held to their own bound") {
  const auto replicas = [](const char* gpu) {
    const PlanResult sure = search_capacity(plan_of(
        fmt::format("model: llama-3.1-8b\nworkload: {{arrivals: {{process: poisson, rate: 400 /s}}, prompt_tokens: "
                    "{{distribution: fixed, value: 512}}, output_tokens: {{distribution: fixed, value: 64}}}}\n"
                    "objectives: {{ttft_p90: 500 ms, tpot_p90: 40 ms}}\nsearch: {{gpus: [{}], max_gpus: 512, tp: [1]}}",
                    gpu)));
    const PlannedDeployment& p = sure.ranked.at(0);
    return static_cast<double>(p.safer.at(2).gpus) / p.safer.at(0).gpus;  // 95 % over 50 %
  };
  CHECK(of_another_vendor(
      *search_capacity(plan_of("model: llama-3.1-8b\nworkload: {arrivals: {process: poisson, rate: 1 "
                               "/s}, prompt_tokens: {distribution: fixed, value: 512}, output_tokens: "
                               "{distribution: fixed, value: 64}}\nsearch: {gpus: [mi300x], tp: [1], "
                               "confidence: 0}"))
           .ranked.at(0)
           .candidate.scenario.deployment));
  CHECK(replicas("mi300x") > replicas("h100-sxm"));
}

TEST_CASE("risk: what is surer is never smaller than what is planned") {
  for (const char* goal : {"cost", "throughput"}) {
    for (const double rate : {7.0, 33.0, 71.0}) {
      const PlanSpec plan = plan_of(chat(fmt::format("{}", rate), fmt::format(", goal: {}", goal)));
      const PlanResult r = search_capacity(plan);
      REQUIRE(!r.ranked.empty());
      const PlannedDeployment& w = r.ranked.front();
      for (const SaferFleet& f : w.safer) {
        CHECK((f.confidence < plan.confidence ? f.gpus <= w.gpus() : f.gpus >= w.gpus()));
        CHECK((f.confidence < plan.confidence ? f.load >= w.load : f.load <= w.load));
      }
    }
  }
}

/// 40 specs and 20 truths each under ROOFCAST_LONG_TESTS=N, which takes minutes; other specs for each N. A few
/// otherwise.
TEST_CASE("risk: a planned fleet meets its objectives as often as it was asked to") {
  const char* many = std::getenv("ROOFCAST_LONG_TESTS");
  const bool all = many != nullptr;
  const int specs = all ? 40 : 6;
  Random random(2025 + (all ? std::strtoul(many, nullptr, 10) : 1));
  PricerPool pricers;
  int planned = 0;
  double met = 0;
  for (int i = 0; i < specs; ++i) {
    const PlanSpec plan = plan_of(made_up(random, i));
    const PlanResult r = search_capacity(plan, {.advise = false});
    if (r.ranked.empty() || !r.ranked.front().probability) continue;
    // Other draws than the plan's own.
    met += probability_of(r.ranked.front(), plan, truth_draws(20, 1000 + static_cast<std::uint64_t>(i)), pricers);
    ++planned;
  }
  REQUIRE(planned >= specs / 2);
  MESSAGE(planned << " fleets met their objectives in " << 100 * met / planned << " % of the truths");
  CHECK(met / planned >= (all ? 0.85 : 0.80));
  CHECK(met / planned <= (all ? 0.95 : 0.995));
}

TEST_CASE("advice: what the given GPUs carry, what would do, and which limit binds") {
  const auto with = [](double rate, const std::string& objectives) {
    return plan_of(
        fmt::format("model: llama-3.1-8b\nworkload: {{arrivals: {{process: poisson, rate: {:g} /s}}, prompt_tokens: "
                    "{{distribution: fixed, value: 512}}, output_tokens: {{distribution: fixed, value: 64}}}}\n"
                    "objectives: {{{}}}\nsearch: {{gpus: [h100-sxm], max_gpus: 2, tp: [1]}}",
                    rate, objectives));
  };
  const std::string limits = "ttft_p90: 500 ms, tpot_p90: 40 ms";
  const PlanSpec plan = with(200, limits);
  const PlanResult r = search_capacity(plan);
  REQUIRE(r.ranked.empty());
  CHECK(r.advice.carries > 0);
  CHECK(r.advice.carries < 200);
  CHECK(r.advice.gpus > 2);
  // so many GPUs do carry it
  PlanSpec larger = plan;
  larger.max_gpus = r.advice.gpus;
  CHECK(!search_capacity(larger).ranked.empty());
  CHECK(!r.advice.binds.empty());
  // the given GPUs carry what is said, and not a quarter more
  CHECK(!search_capacity(with(r.advice.carries, limits), {.advise = false}).ranked.empty());
  CHECK(search_capacity(with(1.25 * r.advice.carries, limits), {.advise = false}).ranked.empty());
}

TEST_CASE("advice: a limit is raised no further than it takes") {
  const auto with = [](double ms) {
    return plan_of(
        fmt::format("model: llama-3.1-8b\nworkload: {{arrivals: {{process: poisson, rate: 2 /s}}, prompt_tokens: 512, "
                    "output_tokens: 64}}\nobjectives: {{ttft_p90: {:g} ms, tpot_p90: 40 ms}}\n"
                    "search: {{gpus: [h100-sxm], max_gpus: 1, tp: [1]}}",
                    ms));
  };
  const PlanResult r = search_capacity(with(5));
  REQUIRE(r.advice.relax.size() == 1);
  const std::string& line = r.advice.relax.front();
  const std::string start = "ttft_p90 from 5 ms to ";
  REQUIRE(line.starts_with(start));
  const double ms = std::stod(line.substr(start.size()));
  CHECK(!search_capacity(with(ms), {.advise = false}).ranked.empty());
  CHECK(search_capacity(with(ms / 1.25), {.advise = false}).ranked.empty());
}

TEST_CASE("risk: a fleet is refused only if too few of all draws hold") {
  int sure = 0, refused = 0;
  for (const int ms : {50, 60, 66, 70, 76, 84, 90, 110}) {
    const PlanResult r = search_capacity(
        plan_of(
            fmt::format("model: llama-3.1-8b\nengine: vllm@0.24\nworkload: {{arrivals: {{process: poisson, rate: 2 "
                        "/s}}, prompt_tokens: 512, output_tokens: 64}}\nobjectives: {{ttft_p90: {} ms, tpot_p90: 40 "
                        "ms}}\nsearch: {{gpus: [h100-sxm], max_gpus: 1, tp: [1], confidence: 0.9}}",
                        ms)),
        {.advise = false});
    INFO(ms);
    sure += r.ranked.empty() ? 0 : 1;
    if (!r.ranked.empty()) continue;
    ++refused;
    REQUIRE(r.nearest);
    CHECK(*r.nearest->probability < 0.9);
  }
  CHECK(sure > 0);
  CHECK(refused > 0);
}

TEST_CASE("risk: the winner is as sure as was asked, in all of its draws") {
  Random random(7);
  for (int i = 0; i < 4; ++i) {
    const ConfigTree tree = parse_config_text(made_up(random, i), "plan.yaml");
    const PlanAnswer answer = answer_plan(tree, {.advise = false});
    if (answer.result.ranked.empty() || !answer.result.ranked.front().probability) continue;
    INFO(i);
    CHECK(*answer.result.ranked.front().probability >= answer.plan.confidence - 1e-9);
  }
}

TEST_CASE("advice: where no single limit stands in the way, all of them") {
  const PlanResult r = search_capacity(
      plan_of("model: llama-3.1-8b\nworkload: {arrivals: {process: poisson, rate: 2 /s}, prompt_tokens: 512, "
              "output_tokens: 64}\nobjectives: {ttft_p90: 1 us, tpot_p90: 1 us}\n"
              "search: {gpus: [h100-sxm], max_gpus: 2, tp: [1]}"));
  REQUIRE(r.ranked.empty());
  REQUIRE(r.advice.relax.size() == 1);
  CHECK(r.advice.relax.front().starts_with("ttft_p90 from 0.001 ms to "));
  CHECK(r.advice.relax.front().find(" and tpot_p90 from 0.001 ms to ") != std::string::npos);
}

TEST_CASE("advice: a budget that is too small") {
  const auto planned = [](const char* budget) {
    return search_capacity(
        plan_of(fmt::format("model: llama-3.1-8b\nworkload: {{arrivals: {{process: poisson, rate: 200 /s}}, "
                            "prompt_tokens: 512, output_tokens: 64}}\nobjectives: {{ttft_p90: 500 ms, tpot_p90: 40 "
                            "ms}}\nsearch: {{gpus: [{{name: h100-sxm, price: 2 USD/h}}], max_gpus: 32, tp: [1], "
                            "max_cost: {} USD/h}}",
                            budget)));
  };
  const PlanResult none = planned("1");
  CHECK(none.too_dear == 1);
  CHECK(none.reason == "the cheapest replica (1 x h100-sxm, tp 1) costs 2.00 USD/h, more than max_cost (1.00 USD/h)");
  CHECK(none.advice.gpus > 2);
  CHECK(none.advice.usd_per_hour == doctest::Approx(2 * none.advice.gpus));
  const PlanResult few = planned("4");
  REQUIRE(few.ranked.empty());
  CHECK(few.advice.gpus == none.advice.gpus);
  CHECK(few.advice.beyond == std::vector<std::string>{"max_cost (4.00 USD/h)"});
  CHECK(few.advice.binds.starts_with("ttft_p90"));
  CHECK(few.advice.carries > 0);
}

TEST_CASE("plan: what its file says without effect is told") {
  const auto notes = [](const std::string& more, const std::string& search = "") {
    return answer_plan(parse_config_text(chat("10", search) + more, "p"), {}, PlanDetail::kAll).result.notes;
  };
  CHECK(notes("").empty());
  const std::vector<std::string> scaled = notes("autoscaling: {min: 1, max: 4}\n");
  REQUIRE(scaled.size() == 1);
  CHECK(scaled.front().starts_with("autoscaling changes nothing here: the load is steady"));
  CHECK(notes("failures: {mtbf: 1000 h, repair: 1 h}\n").size() == 1);
  CHECK(notes("failures: {mtbf: 1000 h, repair: 1 h}\n", ", availability: 0.99").empty());
  CHECK(notes("parallelism: {replicas: 3}\n").size() == 1);
  CHECK(notes("adapters: {count: 2, rank: 8, slots: 2, disk_bandwidth: 1 GB/s}\n").size() == 1);
}

TEST_CASE("plan: flags bind the search or are refused") {
  const ConfigTree tree =
      parse_config_text(chat("10", ", precision: [bf16, {weights: fp8, activations: fp8, kv_cache: fp8}]"), "p");
  const auto flag = [&](const char* key, const char* value) {
    return parse_plan(with_constraint(tree, key, make_scalar(value), "--flag"));
  };
  CHECK(read_candidates(flag("gpu", "h200-sxm"), Fidelity::kCalibrated).kept.at(0).gpu == "h200-sxm");
  CHECK(read_candidates(flag("parallelism.tp", "2"), Fidelity::kCalibrated).kept.at(0).gpus() == 2);
  const Candidates bf16 = read_candidates(flag("precision.weights", "bf16"), Fidelity::kCalibrated);
  REQUIRE(bf16.kept.size() == 1);
  CHECK(bf16.kept[0].scenario.deployment->precision.weights == Dtype::kBf16);
  CHECK_THROWS_AS(with_constraint(tree, "parallelism.replicas", make_scalar("3"), "--dp"), ConfigError);
  CHECK_THROWS_AS(read_candidates(flag("precision.weights", "int4"), Fidelity::kCalibrated), ConfigError);
}

TEST_CASE("plan: a recipe among the searched formats is picked by its name, with all that it sets") {
  const auto weights = [&](const std::string& search, const char* value) {
    const ConfigTree tree = parse_config_text(chat("10", search), "p");
    return read_candidates(parse_plan(with_constraint(tree, "precision.weights", make_scalar(value), "--weights")),
                           Fidelity::kCalibrated)
        .kept;
  };
  const auto awq = weights(", precision: [bf16, gptq, awq, {weights: awq, kv_cache: fp8}]", "awq");
  REQUIRE(awq.size() == 2);
  for (const auto& candidate : awq) {
    const Precision& p = candidate.scenario.deployment->precision;
    CHECK(p.weights == Dtype::kInt4);
    CHECK(p.weight_scales.zero_point_bits == 4);
  }
  CHECK(weights(", weights: [bf16, AWQ]", "awq").size() == 1);
  CHECK(weights(", kv_cache: [bf16, fp8]", "awq").size() == 2);
}

TEST_CASE("plan: what cannot run and what has no price is left out, and said") {
  const Candidates c =
      read_candidates(plan_of(chat("10", ", engines: [vllm, trtllm]") + "price: on_demand\n"), Fidelity::kCalibrated);
  CHECK(c.unsupported == 0);
  const Candidates amd = read_candidates(
      plan_of("model: llama-3.1-8b\nworkload: {arrivals: {process: poisson, rate: 1 /s}, prompt_tokens: {distribution: "
              "fixed, value: 512}, output_tokens: {distribution: fixed, value: 64}}\nsearch: {gpus: [mi300x, mi355x], "
              "engines: [vllm, trtllm], tp: [1]}"),
      Fidelity::kCalibrated);
  CHECK(amd.unsupported == 2);  // TensorRT-LLM on both
  CHECK(amd.unpriced == 1);     // nobody lists an MI355X by the hour
  REQUIRE(amd.kept.size() == 1);
  CHECK(amd.kept[0].gpu == "mi300x");
}

TEST_CASE("spares: as many as the availability needs, by the binomial distribution") {
  // Two of three up, each 90 % of the time: 0.9^3 + 3 x 0.9^2 x 0.1.
  CHECK(fleet_availability(2, 1, 0.9) == doctest::Approx(0.729 + 0.243));
  CHECK(fleet_availability(2, 0, 0.9) == doctest::Approx(0.81));
  CHECK(fleet_availability(5, 0, 1.0) == 1.0);
  // 8 GPUs of 2000 h each: a failure every 250 h, back after 30 min and a cold start of 6 min.
  FleetSpec fleet;
  fleet.failures = FailureSpec{.mtbf = Seconds(2000 * 3600.0), .repair = Seconds(1800)};
  fleet.cold_start = Seconds(360);
  CHECK(replica_availability(fleet, 8) == doctest::Approx(250.0 / 250.6));
  Candidate c;
  c.up = 0.9;
  PlanSpec plan;
  plan.availability = 0.999;
  // Of two needed: 1 spare 0.972, 2 spares 0.9963, 3 spares 0.99954.
  CHECK(spares_of(plan, c, 2) == 3);
  plan.availability = 0;
  plan.spare_replicas = 1;
  CHECK(spares_of(plan, c, 2) == 1);
}

TEST_CASE("spares: zones that are interrupted as a whole") {
  // 2 and 2 replicas, each zone up 90 %: either will do, 1 - 0.1^2.
  CHECK(fleet_availability(2, 2, 1.0, 2, 0.9) == doctest::Approx(0.99));
  // 2 and 1 replicas: the zone of two must be up.
  CHECK(fleet_availability(2, 1, 1.0, 2, 0.9) == doctest::Approx(0.9));
  CHECK(fleet_availability(2, 7, 1.0, 1, 0.9) == doctest::Approx(0.9));
  // As many zones as replicas: they fail by themselves.
  CHECK(fleet_availability(2, 2, 1.0, 4, 0.9) == doctest::Approx(fleet_availability(2, 2, 0.9)));
  // Zones that are always up change nothing.
  CHECK(fleet_availability(5, 2, 0.9, 3, 1.0) == doctest::Approx(fleet_availability(5, 2, 0.9)));
  Candidate c;
  c.zone_up = 0.99;
  PlanSpec plan;
  plan.availability = 0.999;
  plan.zones = ZoneSpec{.count = 2, .mtbf = Seconds(1), .repair = Seconds(0)};
  CHECK(spares_of(plan, c, 4) == 4);  // either zone alone: 1 - 0.01^2 = 0.9999
  plan.zones->count = 3;
  CHECK(spares_of(plan, c, 4) == 2);  // any two of three: 0.99^3 + 3 x 0.99^2 x 0.01 = 0.9997
  plan.zones->count = 1;
  CHECK(spares_of(plan, c, 4) > 1000);
}

TEST_CASE("spares: what fits beside its spares, and what is known of failures") {
  SpecCache specs;
  const ConfigTree scenario = parse_config_text("{model: llama-3.1-8b, gpu: h100-sxm}", "plan.yaml");
  Candidate c;
  c.scenario = read_scenario(scenario, Fidelity::kCalibrated, specs);
  c.most_gpus = c.most_of_kind = 8;
  c.up = 0.9;
  PlanSpec plan;
  plan.space.scenario = scenario;
  plan.spare_replicas = 2;
  CHECK(most_replicas(plan, c) == 6);
  // Five of eight are up 99.5 % of the time, six of nine 99.2 %: six need a ninth.
  plan.availability = 0.99;
  CHECK(most_replicas(plan, c) == 5);

  FleetSpec& fleet = c.scenario.serving.fleet;
  fleet.cold_start = Seconds(360);
  CHECK_THROWS_WITH_AS(take_failures(plan, c), doctest::Contains("'availability' needs to know how often GPUs fail"),
                       ConfigError);
  plan.zones = ZoneSpec{.count = 2, .mtbf = Seconds(9000), .repair = Seconds(640)};
  take_failures(plan, c);
  CHECK(c.zone_up == doctest::Approx(0.9));  // down for the repair and a cold start
  CHECK(c.up == 0.9);                        // nothing is known of GPUs
  fleet.failures = FailureSpec{.mtbf = Seconds(2000 * 3600.0), .repair = Seconds(1800)};
  plan.availability = 0;
  take_failures(plan, c);
  CHECK(fleet.failures);
  plan.availability = 0.99;
  take_failures(plan, c);
  CHECK(c.up == doctest::Approx(2000 / 2000.6));
  CHECK_FALSE(fleet.failures);  // they are paid for as spares, not simulated
}

TEST_CASE("growth: the fleet follows the load, is never smaller, and the bill is of all months") {
  const auto planned = [](const std::string& search) {
    return answer_plan(parse_config_text("{model: llama-3.1-8b, workload: {arrivals: {process: poisson, rate: 20 /s}, "
                                         "prompt_tokens: 1024, output_tokens: 64}, objectives: {ttft_p99: 2 s, "
                                         "tpot_p99: 60 ms}, search: {gpus: [h100-sxm], tp: [1], " +
                                             search + "}}",
                                         "plan"),
                       {});
  };
  const PlanAnswer a = planned("max_gpus: 16, growth: {per_month: 0.25, months: 10}");
  REQUIRE(a.growth.size() == 1);
  const GrowthPath& path = a.growth.front();
  CHECK_FALSE(path.outgrown);
  REQUIRE(path.stages.size() >= 2);
  CHECK(path.stages.front().gpus == a.result.ranked.front().gpus());
  double usd = 0;
  for (std::size_t i = 0; i < path.stages.size(); ++i) {
    const GrowthStage& s = path.stages[i];
    CHECK(s.load == doctest::Approx(20 * std::pow(1.25, s.month)));
    CHECK(*s.probability >= 0.9);
    if (i > 0) CHECK(s.gpus > path.stages[i - 1].gpus);
    const int until = i + 1 < path.stages.size() ? path.stages[i + 1].month : 10;
    usd += s.usd_per_hour * (until - s.month) * 730.5;
  }
  CHECK(path.usd == doctest::Approx(usd));
  const PlanAnswer small = planned("max_gpus: 2, growth: {per_month: 1, months: 12}");
  REQUIRE(small.growth.front().outgrown);
  CHECK(*small.growth.front().outgrown < 12);
  CHECK(small.growth.front().stages.back().gpus <= 2);
  const PlanAnswer forecast = planned("max_gpus: 16, confidence: 0, growth: {per_month: 0.25, months: 10}");
  CHECK(forecast.growth.front().stages.back().gpus <= path.stages.back().gpus);
  CHECK_FALSE(forecast.growth.front().stages.back().probability);
}

TEST_CASE("growth: one replica that is enough for all months stays one") {
  const PlanAnswer a =
      answer_plan(parse_config_text(
                      "{model: llama-3.1-8b, workload: {arrivals: {process: poisson, rate: 2 /s}, prompt_tokens: 1024, "
                      "output_tokens: 64}, objectives: {ttft_p99: 2 s}, search: {gpus: [h100-sxm], tp: [1], max_gpus: "
                      "4, confidence: 0, growth: {per_month: 0.001, months: 12}}}",
                      "plan"),
                  {});
  REQUIRE(a.growth.size() == 1);
  CHECK_FALSE(a.growth.front().outgrown);
  CHECK(a.growth.front().stages.size() == 1);
  CHECK(a.growth.front().usd == doctest::Approx(12 * 730.5 * a.result.ranked.front().usd_per_hour()));
}

TEST_CASE("growth: decode workers follow where full caches, not prompts, hold up first tokens") {
  // 24 GB hold 16 GB of weights: some 40,000 tokens, a dozen requests of 3300.
  const Scenario s = read_scenario(
      parse_config_text(
          "{model: llama-3.1-8b, gpu: l4, engine: vllm, workload: {arrivals: {process: poisson, rate: 1 /s}, "
          "prompt_tokens: 3000, output_tokens: 300, requests: 100}, objectives: {ttft_p90: 4 s}, disaggregation: "
          "{prefill: "
          "{gpu: h100-sxm}}}",
          "s.yaml"),
      Fidelity::kCalibrated);
  PlanSpec plan = plan_of(chat("1", ", goal: gpus"));
  PlannedDeployment p;
  p.candidate.scenario = s;
  p.candidate.most_gpus = p.candidate.most_of_kind = p.candidate.most_prefill_gpus = 16;
  p.replicas = p.prefill_replicas = 1;
  p.tested = p.fleet();
  p.load = 1.5;
  PricerPool pricers;
  while (!confirm(p, plan, pricers) && p.gpus() < 16) {
  }
  CHECK(p.confirmed);
  CHECK(p.replicas > 1);
  CHECK(p.replicas > p.prefill_replicas);
}

TEST_CASE("risk: the winner's probability and the ranges of its objectives are of the same draws") {
  const ConfigTree tree = parse_config_text(chat("20", ""), "plan.yaml");
  const PlanAnswer a = answer_plan(tree, {});
  REQUIRE(!a.result.ranked.empty());
  const PlannedDeployment& w = a.result.ranked.front();
  REQUIRE(w.ranges.size() == 2);
  PricerPool pricers;
  CHECK(*w.probability == doctest::Approx(probability_of(w, a.plan, draws_of(a.plan, w.candidate.scenario), pricers)));
  for (std::size_t i = 0; i < w.ranges.size(); ++i) {
    const ObjectiveRange& range = w.ranges[i];
    const Seconds limit = w.result.verdicts[i].objective.limit;
    CHECK(range.low <= range.high);
    CHECK(*w.probability + range.missed <= 1 + 1e-9);  // who misses one objective does not meet all
    CHECK((range.high <= limit || range.missed >= 0.025));
    CHECK((range.high > limit || range.missed <= 0.075));
    CHECK(range_of(w, i).high == range.high);
  }
  PlannedDeployment unjudged = w;
  unjudged.ranges.clear();
  CHECK(std::isnan(range_of(unjudged, 0).missed));
}

TEST_CASE("risk: with one replica less the winner would not hold in as many draws as were asked for") {
  int compared = 0;
  for (const double rate : {250.0, 500.0, 750.0}) {
    CAPTURE(rate);
    const PlanAnswer a =
        answer_plan(parse_config_text(chat(fmt::format("{}", rate), ", confidence: 0.95"), "plan"), {});
    REQUIRE(!a.result.ranked.empty());
    const PlannedDeployment& w = a.result.ranked.front();
    CHECK(w.in_all_draws);
    const PlannedDeployment& forecast =
        *std::find_if(a.result.forecasts.begin(), a.result.forecasts.end(),
                      [&](const auto& f) { return f.candidate.index == w.candidate.index; });
    if (w.replicas == forecast.replicas) continue;
    ++compared;
    PlannedDeployment less = w;
    less.replicas = w.replicas - 1, less.tested.replicas = w.tested.replicas - 1;
    // What a draw does comes from the metrics of a fleet: of the forecast's, or of its own.
    PricerPool pricers;
    const std::vector<TruthDraw> draws = draws_of(a.plan, w.candidate.scenario);
    less.result = forecast.result;
    double share = probability_of(less, a.plan, draws, pricers);
    less.result = test_load(
        w.candidate.scenario,
        {.load = less.tested_load(), .fleet = less.tested, .seed = w.candidate.scenario.serving.seed + 1}, pricers);
    share = std::min(share, probability_of(less, a.plan, draws, pricers));
    CHECK(share < a.plan.confidence - 1e-9);
  }
  CHECK(compared > 0);
}

TEST_CASE("owned: GPUs at hand carry what they hold, and the rest is planned") {
  const auto planned = [](const std::string& rate, const std::string& owned) {
    return answer_plan(
        parse_config_text("{model: llama-3.1-8b, workload: {arrivals: {process: poisson, rate: " + rate +
                              " /s}, prompt_tokens: 1024, output_tokens: 64}, objectives: {ttft_p99: 2 s, tpot_p99: "
                              "60 ms}, search: {gpus: [h100-sxm], tp: [1], max_gpus: 16" +
                              owned + "}}",
                          "plan"),
        {}, PlanDetail::kRanking);
  };
  const std::string a100 = ", owned: {gpus: [{name: a100-sxm, available: 2, price: 0.5 USD/h}]}";
  const PlanAnswer all = planned("90", ""), mixed = planned("90", a100);
  REQUIRE(mixed.owned);
  const PlannedDeployment& own = mixed.owned->planned;
  CHECK(own.candidate.gpu == "a100-sxm");
  CHECK(own.gpus() == 2);
  CHECK(own.usd_per_hour() == doctest::Approx(1.0));
  CHECK(mixed.owned->offered == 90);
  CHECK(own.load + mixed.result.ranked.front().load == doctest::Approx(90));
  CHECK(mixed.result.ranked.front().candidate.gpu == "h100-sxm");
  CHECK(mixed.result.ranked.front().gpus() <= all.result.ranked.front().gpus());
  const PlanAnswer zoned = planned("90", a100 + ", availability: 0.99, zones: {count: 2, mtbf: 100 h, repair: 1 h}");
  REQUIRE(zoned.owned);
  CHECK(zoned.owned->planned.gpus() == 2);
  CHECK(zoned.result.ranked.front().spare == zoned.result.ranked.front().replicas);  // either zone alone
  const PlanAnswer enough = planned("1", a100);
  CHECK_FALSE(enough.owned);
  CHECK(enough.result.ranked.front().candidate.gpu == "a100-sxm");
  CHECK(enough.result.ranked.front().gpus() == 1);
}
