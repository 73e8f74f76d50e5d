#include "sim/plan/prices.h"

#include <array>
#include <cmath>
#include <set>

#include <doctest/doctest.h>

#include "base/config_library.h"
#include "sim/plan/scenario.h"
#include "sim/plan/token_bill.h"
#include "sim/serve/simulation.h"
#include "sim/step/step_model.h"

using namespace roofcast;

namespace {

Deployment deployment(const std::string& text) {
  return *read_scenario(parse_config_text("model: llama-3.1-8b\n" + text, "p.yaml"), Fidelity::kCalibrated).deployment;
}
std::string refusal(const std::string& text) {
  try {
    (void)deployment(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("prices: every offer has a shipped GPU, a source, a date and a region") {
  const std::vector<std::string> gpus = names_of("hardware");
  CHECK(price_offers().size() > 40);
  for (const PriceOffer& o : price_offers()) {
    CAPTURE(o.gpu);
    CAPTURE(o.quote.provider);
    CHECK(std::count(gpus.begin(), gpus.end(), o.gpu) == 1);
    CHECK(o.quote.source.find('.') != std::string::npos);
    CHECK(o.quote.date.starts_with("202"));
    CHECK(!o.quote.region.empty());
  }
}

TEST_CASE("prices: of one provider, reserved is cheaper than on demand, and spot too") {
  for (const PriceOffer& dear : price_offers()) {
    for (const PriceOffer& cheap : price_offers()) {
      if (dear.gpu != cheap.gpu || dear.quote.provider != cheap.quote.provider) continue;
      if (dear.quote.tier != "on_demand" || cheap.quote.tier != "spot") continue;
      CAPTURE(dear.gpu);
      CHECK(cheap.price < dear.price);
    }
  }
}

TEST_CASE("prices: the cheapest offer of the tier whose instances hold the replica") {
  const Deployment one = deployment("gpu: h100-sxm"), four = deployment("gpu: h100-sxm\nparallelism: {tp: 4}");
  CHECK(one.price.tier == "on_demand");
  CHECK(one.price.host == 1);
  CHECK(four.price.host >= 4);
  CHECK(one.gpu.price <= four.gpu.price);  // a provider of single GPUs cannot run four together
  for (const PriceOffer& o : price_offers()) {
    if (o.gpu == "h100-sxm" && o.quote.tier == "on_demand" && o.sizes.back() >= 4) CHECK(o.price >= four.gpu.price);
  }
}

TEST_CASE("prices: tier, provider, own price, own machine") {
  CHECK(deployment("gpu: h100-sxm\nprice: reserved_3y").price.tier == "reserved_3y");
  CHECK(deployment("gpu: h100-sxm\nprice: {tier: on_demand, provider: lambda}").price.provider == "lambda");
  const Deployment given = deployment("gpu: {name: h100-sxm, price: 2 USD/h}");
  CHECK(given.price.tier == "given");
  CHECK(given.gpu.price.value == 2.0);
  // 35,040 USD over 4 years of 8,760 h: 1 USD/h; 1 kW at PUE 1.25 and 0.08 USD/kWh: 0.1 USD/h
  const Deployment owned = deployment(
      "gpu: h100-sxm\nprice: {tier: owned, usd_per_gpu: 35040, years: 4, power: 1 kW, power_usage_effectiveness: 1.25, "
      "usd_per_kwh: 0.08}");
  CHECK(owned.gpu.price.value == doctest::Approx(1.1).epsilon(1e-12));
  CHECK(owned.price.tier == "owned");
}

TEST_CASE("prices: what nobody offers is refused, and what is not known is not a number") {
  CHECK(refusal("gpu: l4\nprice: reserved_3y").find("no reserved_3y price of l4") != std::string::npos);
  CHECK(refusal("gpu: l4\nprice: reserved").find("reserved_1y") != std::string::npos);  // the nearest
  CHECK(std::isnan(deployment("gpu: mi355x").gpu.price.value));
  CHECK(deployment("gpu: mi355x").price.tier == "none");
  CHECK(deployment("gpu: mi355x\nprice: reserved_3y").gpu.price.value > 0);
}

TEST_CASE("prices: whole hosts are paid for") {
  Deployment d = deployment("gpu: b200-sxm\nprice: {tier: on_demand, provider: nebius}\nparallelism: {tp: 2}");
  CHECK(d.price.host == 8);
  CHECK(paid_gpus(d, 1) == 8);   // 2 of 8
  CHECK(paid_gpus(d, 4) == 8);   // four replicas of two
  CHECK(paid_gpus(d, 5) == 16);  // the fifth is on a second host
  CHECK(usd_per_hour(d, 5).value == doctest::Approx(16 * d.gpu.price.value));
}

TEST_CASE("token bill: dollars of all tokens add up to the bill, and a cached token costs less than one that is read") {
  const TokenCounts tokens{.input = 3e6, .cached_input = 1e6, .output = 1e6};
  // times 1, 0.1, 10: 3 + 0.1 + 10 = 13.1 parts of a bill of 26.2 USD
  const TokenBill bill = split_bill(26.2, tokens, {.input = 1e-6, .cached_input = 1e-7, .output = 1e-5});
  CHECK(bill.usd_per_million_input == doctest::Approx(2.0));
  CHECK(bill.usd_per_million_cached_input == doctest::Approx(0.2));
  CHECK(bill.usd_per_million_output == doctest::Approx(20.0));
  CHECK(3 * bill.usd_per_million_input + bill.usd_per_million_cached_input + bill.usd_per_million_output ==
        doctest::Approx(26.2));
  const auto d = std::make_shared<const Deployment>(deployment("gpu: h100-sxm"));
  const TokenTimes times = token_times(d, {}, 4000, 500, 32);
  CHECK(times.cached_input > 0);
  CHECK(times.cached_input < 0.5 * times.input);
  CHECK(times.input < times.output);
}

TEST_CASE("token bill: a cached token has its price where the step waits for the host, too") {
  // Short prefill chunks of a model of 61 layers without CUDA graphs: launching takes longer than the kernels.
  const auto d =
      read_scenario(parse_config_text("{model: deepseek-r1, gpu: h200-sxm, parallelism: {tp: 8}, engine: {name: vllm, "
                                      "cuda_graphs: {enabled: false}}}",
                                      "p.yaml"),
                    Fidelity::kCalibrated)
          .deployment;
  StepModel model(d);
  const auto step = [&](int before) {
    const std::array<PrefillChunk, 1> chunks{{{1024, before, true}}};
    return model.breakdown({.decodes = 0, .decode_context = 0, .prefills = chunks});
  };
  const StepBreakdown first = step(0), second = step(1024);
  REQUIRE(first.host_time > Seconds(0));
  REQUIRE(second.time == first.time);  // a longer context costs no time here
  const double added = (second.gpu_time - first.gpu_time).base();
  CHECK(added > 0);
  CHECK(cached_token_seconds(model, 1024) == doctest::Approx(added / 1024));
}

TEST_CASE("token bill: samples that are dropped are paid for by those that are returned") {
  const auto bill_of = [](const std::string& workload) {
    const Scenario s = read_scenario(
        parse_config_text("model: llama-3.1-8b\ngpu: h100-sxm\nworkload: {arrivals: {process: poisson, rate: 8 /s}, "
                          "prompt_tokens: 512, output_tokens: 64, requests: 200" +
                              workload + "}\n",
                          "p.yaml"),
        Fidelity::kCalibrated);
    const ServingMetrics m = simulate(s.deployment, *s.workload, s.serving);
    return std::pair(token_bill(3.0, m, s, 1, 0), m);
  };
  // The same work: four sequences for each prompt, of which the client gets all or one.
  const auto [four, all] = bill_of(", samples: {n: 4}");
  const auto [best, one] = bill_of(", samples: {n: 1, best_of: 4}");
  CHECK(all.output_tokens == 4 * one.output_tokens);
  CHECK(best.usd_per_million_input == doctest::Approx(four.usd_per_million_input));
  CHECK(best.usd_per_million_output == doctest::Approx(4 * four.usd_per_million_output));
  // Four sequences read the weights once in each step, so each of their tokens costs less than one by itself.
  const auto [single, metrics] = bill_of("");
  CHECK(four.usd_per_million_output < 0.5 * single.usd_per_million_output);
  for (const auto& [bill, m] : {std::pair(four, all), std::pair(best, one), std::pair(single, metrics)})
    CHECK(bill.usd_per_million_input * m.input_tokens + bill.usd_per_million_output * m.output_tokens ==
          doctest::Approx(3e6));
}

TEST_CASE("token bill: requests that wait do not decode") {
  // 8 seats, and all requests at once: in the mean 8 sequences decode, however many wait.
  const auto bill_of = [](int requests) {
    const Scenario s = read_scenario(
        parse_config_text("model: llama-3.1-8b\ngpu: h100-sxm\nengine: {max_num_seqs: 64}\nworkload: {arrivals: "
                          "{process: poisson, rate: 1000 /s}, prompt_tokens: 4096, output_tokens: 16, requests: " +
                              std::to_string(requests) + "}\n",
                          "p.yaml"),
        Fidelity::kCalibrated);
    const ServingMetrics m = simulate(s.deployment, *s.workload, s.serving);
    return token_bill(1.0, m, s, 1, 0).input_share;
  };
  // Prefill takes nearly all of the time of such requests; what waits does not change how a step is shared.
  CHECK(bill_of(1600) == doctest::Approx(bill_of(200)).epsilon(0.02));
}
