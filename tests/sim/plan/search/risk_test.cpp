#include "sim/plan/search/risk.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/random.h"
#include "sim/plan/search/advice.h"

using namespace roofcast;

namespace {

PlanSpec plan_of(const std::string& text) { return parse_plan(parse_config_text(text, "plan.yaml")); }

std::string chat(const std::string& rate, const std::string& search) {
  return "model: llama-3.1-8b\nworkload:\n  arrivals: {process: poisson, rate: " + rate +
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

/// 40 specs and 20 truths each under ROOFCAST_LONG_TESTS, which takes minutes; a few otherwise.
TEST_CASE("risk: a planned fleet meets its objectives as often as it was asked to") {
  const bool all = std::getenv("ROOFCAST_LONG_TESTS") != nullptr;
  const int specs = all ? 40 : 6;
  Random random(2026);
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
  const PlanSpec plan = plan_of(
      "model: llama-3.1-8b\nworkload: {arrivals: {process: poisson, rate: 200 /s}, prompt_tokens: {distribution: "
      "fixed, "
      "value: 512}, output_tokens: {distribution: fixed, value: 64}}\nobjectives: {ttft_p90: 500 ms, tpot_p90: 40 ms}\n"
      "search: {gpus: [h100-sxm], max_gpus: 2, tp: [1]}");
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
