#include "sim/plan/prices.h"

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <doctest/doctest.h>

#include "base/config_library.h"
#include "base/random.h"
#include "sim/plan/fleet_cost.h"
#include "sim/plan/scenario.h"
#include "sim/plan/token_bill.h"
#include "sim/serve/simulation.h"
#include "sim/step/deployment.h"
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

TEST_CASE("prices: a GPU's file has none, so that its name and its file cost the same") {
  for (const std::string& name : names_of("hardware")) {
    INFO(name);
    CHECK(load_named("hardware", name, SourceLocation{"test", 0, 0})->find("price") == nullptr);
  }
}

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

TEST_CASE("prices: instances cost what their provider lists for the whole") {
  const auto listed = [](const std::string& provider, const std::string& gpu, int size) {
    for (const PriceOffer& o : price_offers()) {
      const bool sold = std::find(o.sizes.begin(), o.sizes.end(), size) != o.sizes.end();
      if (o.quote.provider == provider && o.gpu == gpu && o.quote.tier == "on_demand" && sold)
        return size * o.quote.per_gpu.value;
    }
    return 0.0;
  };
  // Rows of SkyPilot's catalogs: 2x_RTX4090_SECURE, 4x_H200-SXM_SECURE, gpu_4x_h100_sxm5, ...
  CHECK(listed("runpod", "rtx-4090", 2) == doctest::Approx(1.48));
  CHECK(listed("runpod", "h200-sxm", 4) == doctest::Approx(18.36));
  CHECK(listed("runpod", "l40s", 2) == doctest::Approx(1.98));
  CHECK(listed("lambda", "h100-sxm", 1) == doctest::Approx(4.29));
  CHECK(listed("lambda", "h100-sxm", 2) == doctest::Approx(8.38));
  CHECK(listed("lambda", "h100-sxm", 4) == doctest::Approx(16.36));
  CHECK(listed("lambda", "h100-sxm", 8) == doctest::Approx(31.92));
  CHECK(listed("lambda", "b200-sxm", 2) == doctest::Approx(13.78));
  CHECK(listed("lambda", "b200-sxm", 8) == doctest::Approx(53.52));
  CHECK(listed("nebius", "l40s", 4) == doctest::Approx(9.1376));
  CHECK(listed("verda", "b300-sxm", 4) == doctest::Approx(27.96));
}

TEST_CASE("prices: of one provider, reserved is cheaper than on demand, and spot too") {
  for (const PriceOffer& dear : price_offers()) {
    for (const PriceOffer& cheap : price_offers()) {
      if (dear.gpu != cheap.gpu || dear.quote.provider != cheap.quote.provider) continue;
      if (dear.quote.tier != "on_demand" || cheap.quote.tier != "spot") continue;
      CAPTURE(dear.gpu);
      CHECK(cheap.quote.per_gpu < dear.quote.per_gpu);
    }
  }
}

TEST_CASE("prices: tier, provider, own price, own machine") {
  CHECK(deployment("gpu: h100-sxm").offers.front().tier == "on_demand");
  CHECK(deployment("gpu: h100-sxm\nprice: reserved_3y").offers.front().tier == "reserved_3y");
  for (const PriceQuote& q : deployment("gpu: h100-sxm\nprice: {tier: on_demand, provider: lambda}").offers)
    CHECK(q.provider == "lambda");
  const Deployment given = deployment("gpu: {name: h100-sxm, price: 2 USD/h}");
  REQUIRE(given.offers.size() == 1);
  CHECK(given.offers.front().tier == "given");
  CHECK(cheapest_bill(given, 3).usd_per_hour() == 6.0);
  // 35,040 USD over 4 years of 8,760 h: 1 USD/h; 1 kW at PUE 1.25 and 0.08 USD/kWh: 0.1 USD/h
  const Deployment owned = deployment(
      "gpu: h100-sxm\nprice: {tier: owned, usd_per_gpu: 35040, years: 4, power: 1 kW, power_usage_effectiveness: 1.25, "
      "usd_per_kwh: 0.08}");
  CHECK(least_gpu_price(owned).value == doctest::Approx(1.1).epsilon(1e-12));
  CHECK(owned.offers.front().tier == "owned");
}

TEST_CASE("prices: a price that nobody checked against its provider says so wherever it is printed") {
  // TensorWave's list is from a research note; an MI325X is on demand there alone. Nebius' list is its own.
  const Deployment noted = deployment("gpu: mi325x\nprice: {tier: on_demand, provider: tensorwave}");
  const PriceQuote* quote = cheapest_bill(noted, 1).decode.quote;
  CHECK_FALSE(quote->checked);
  CHECK(offer_words(*quote) == "on_demand, tensorwave, 2026-05-18, unchecked list");
  CHECK(price_line(noted, quote) ==
        "1.95 USD/h per GPU (on_demand, tensorwave, 2026-05-18, unchecked list, in instances of 8)");
  const Deployment listed = deployment("gpu: b200-sxm\nprice: {tier: on_demand, provider: nebius}");
  CHECK(cheapest_bill(listed, 1).decode.quote->checked);
  CHECK(price_line(listed, cheapest_bill(listed, 1).decode.quote).find("unchecked") == std::string::npos);
}

TEST_CASE("prices: what nobody offers is refused, and what is not known is not a number") {
  CHECK(refusal("gpu: l4\nprice: reserved_3y").find("no reserved_3y price of l4") != std::string::npos);
  CHECK(refusal("gpu: l4\nprice: reserved").find("reserved_1y") != std::string::npos);  // the nearest
  const Deployment none = deployment("gpu: mi355x");
  CHECK(none.offers.empty());
  CHECK(std::isnan(least_gpu_price(none).value));
  CHECK(std::isnan(cheapest_bill(none, 1).usd_per_hour()));
  CHECK(cheapest_bill(deployment("gpu: mi355x\nprice: reserved_3y"), 1).usd_per_hour() > 0);
}

TEST_CASE("prices: whole instances are paid for") {
  const Deployment d = deployment("gpu: b200-sxm\nprice: {tier: on_demand, provider: nebius}\nparallelism: {tp: 2}");
  REQUIRE(d.offers.size() == 1);                 // only instances of 8
  CHECK(cheapest_bill(d, 1).paid_gpus() == 8);   // 2 of 8
  CHECK(cheapest_bill(d, 4).paid_gpus() == 8);   // four replicas of two
  CHECK(cheapest_bill(d, 5).paid_gpus() == 16);  // the fifth is on a second instance
  CHECK(cheapest_bill(d, 5).usd_per_hour() == doctest::Approx(16 * d.offers.front().per_gpu.value));
  CHECK(cheapest_bill(d, 0).usd_per_hour() == 0);
}

TEST_CASE("prices: the cheapest bill, not the cheapest GPU-hour") {
  // On demand, a GPU of an instance of 8 costs 5.50 USD/h at Nebius, one of any size 6.03 USD/h at Spheron.
  const Deployment d = deployment("gpu: b200-sxm\nparallelism: {tp: 2}");
  CHECK(cheapest_bill(d, 1).usd_per_hour() == doctest::Approx(2 * 6.03));  // 44.00 for the eight
  CHECK(cheapest_bill(d, 1).decode.quote->provider == "spheron");
  CHECK(cheapest_bill(d, 4).usd_per_hour() == doctest::Approx(8 * 5.50));  // a whole instance: 48.24 at Spheron
  CHECK(cheapest_bill(d, 4).decode.quote->provider == "nebius");
}

namespace {

/// The bill of one offer, counted instance by instance: replicas go one after another into the instance at hand.
double usd_instance_by_instance(const PriceOffer& offer, int gpus, int replicas) {
  double least = std::numeric_limits<double>::infinity();
  for (const int size : offer.sizes) {
    if (size < gpus && size != offer.sizes.back()) continue;
    int instances = 0, room = 0;
    for (int i = 0; i < replicas; ++i) {
      if (gpus > size) {
        for (int left = gpus; left > 0; left -= size) ++instances;
      } else {
        if (room < gpus) ++instances, room = size;
        room -= gpus;
      }
    }
    least = std::min(least, instances * size * offer.quote.per_gpu.value);
  }
  return least;
}

}  // namespace

TEST_CASE("prices: a bill is that of the best offer, and choosing among all providers never costs more than one") {
  Random random(7);
  const auto pick = [&](const auto& from) {
    return from[static_cast<std::size_t>(random.uniform() * static_cast<double>(std::size(from)))];
  };
  const std::array<std::string, 5> gpus{"h100-sxm", "h200-sxm", "b200-sxm", "a100-sxm", "l40s"},
      tiers{"on_demand", "spot", "reserved_1y", "reserved_3y", "owned"};
  std::map<std::string, Deployment> deployments;
  for (const std::string& gpu : gpus) deployments.emplace(gpu, deployment("gpu: " + gpu));
  int priced = 0, saved = 0;
  for (int i = 0; i < 2000; ++i) {
    Deployment d = deployments.at(pick(gpus)), prefill = deployments.at(pick(gpus));
    d.sharding.tp = 1 << static_cast<int>(random.uniform() * 5);  // up to 16: two nodes
    prefill.sharding.tp = 1 << static_cast<int>(random.uniform() * 4);
    const std::string tier = pick(tiers);
    const FleetSpan span{1 + static_cast<int>(random.uniform() * 12), 1 + static_cast<int>(random.uniform() * 6)};
    const auto offers = [&](Deployment& of, const std::string& provider) {
      try {
        set_offers(of, {.tier = tier, .provider = provider, .own = {}, .location = {}}, false);
      } catch (const NoOffer&) {
        of.offers.clear();
      }
      return !of.offers.empty();
    };
    if (!offers(d, "")) continue;
    ++priced;
    const double all = cheapest_bill(d, span.replicas).usd_per_hour();
    double best = std::numeric_limits<double>::infinity();
    for (const PriceOffer& o : price_offers()) {
      if (o.gpu != d.gpu.name || o.quote.tier != tier) continue;
      if (o.sizes.back() < std::min(d.sharding.gpus(), d.gpu.node.gpus_per_node)) continue;
      best = std::min(best, usd_instance_by_instance(o, d.sharding.gpus(), span.replicas));
    }
    CAPTURE(d.gpu.name);
    CAPTURE(d.sharding.tp);
    CAPTURE(tier);
    CHECK(all == doctest::Approx(best));
    CHECK(all >= least_gpu_price(d).value * d.sharding.gpus() * span.replicas - 1e-9);  // the bound of a search
    if (!offers(prefill, "")) continue;
    const double together = cheapest_bill(d, &prefill, {&span, 1}).usd_per_hour();
    std::set<std::string> providers;
    for (const PriceOffer& o : price_offers()) providers.insert(o.quote.provider);
    for (const std::string& provider : providers) {
      Deployment own = d, other = prefill;
      if (!offers(own, provider)) continue;
      CHECK(all <= cheapest_bill(own, span.replicas).usd_per_hour() + 1e-9);
      if (!offers(other, provider)) continue;
      const double one = cheapest_bill(own, &other, {&span, 1}).usd_per_hour();
      CHECK(together <= one + 1e-9);
      saved += together < one - 1e-9 ? 1 : 0;
    }
  }
  CHECK(priced > 500);
  CHECK(saved > 50);
}

TEST_CASE("prices: more replicas never cost less") {
  for (const char* gpu : {"h100-sxm", "h200-sxm", "b200-sxm", "a100-sxm"}) {
    for (const int tp : {1, 2, 4, 8}) {
      const Deployment d = deployment(std::string("gpu: ") + gpu + "\nparallelism: {tp: " + std::to_string(tp) + "}");
      for (int n = 0; n < 20; ++n)
        CHECK(cheapest_bill(d, n).usd_per_hour() <= cheapest_bill(d, n + 1).usd_per_hour() + 1e-9);
    }
  }
}

TEST_CASE("prices: prefill and decode workers share instances of one offer") {
  const std::string owned = "\nprice: {tier: owned, usd_per_gpu: 35040, years: 4, host: 8}";  // 1 USD/h
  const Deployment decode = deployment("gpu: h100-sxm\nparallelism: {tp: 4}" + owned),
                   prefill = deployment("gpu: h100-sxm\nparallelism: {tp: 2}" + owned);
  const auto bill = [&](int decoding, int prefilling) {
    const FleetSpan span{decoding, prefilling};
    return cheapest_bill(decode, &prefill, {&span, 1});
  };
  CHECK(bill(1, 2).usd_per_hour() == doctest::Approx(8));  // 4 + 2 x 2
  CHECK(bill(1, 2).prefill.usd == doctest::Approx(4));
  CHECK(bill(1, 1).usd_per_hour() == doctest::Approx(8));
  CHECK(bill(1, 1).decode.usd == doctest::Approx(8 * 4 / 6.0));  // by the GPUs in use
  CHECK(bill(3, 2).usd_per_hour() == doctest::Approx(16));       // 8, 4 + 2 x 2
  CHECK(bill(3, 3).usd_per_hour() == doctest::Approx(24));       // ... and one more
  const Deployment other = deployment("gpu: a100-sxm\nparallelism: {tp: 2}" + owned);
  const FleetSpan span{1, 2};
  CHECK(cheapest_bill(decode, &other, {&span, 1}).usd_per_hour() == doctest::Approx(16));  // another machine
}

TEST_CASE("prices: workers that send each other caches rent from one provider") {
  // Verda has single H100s for 2.29 USD/h, but no L40S; Nebius has both.
  const Deployment decode = deployment("gpu: h100-sxm"), prefill = deployment("gpu: l40s");
  const FleetSpan span{1, 1};
  const Bill bill = cheapest_bill(decode, &prefill, {&span, 1});
  CHECK(bill.decode.quote->provider == bill.prefill.quote->provider);
  CHECK(bill.usd_per_hour() == doctest::Approx(2.95 + 1.5484));
}

TEST_CASE("fleet cost: an autoscaled fleet pays for the whole instances of the replicas there are at the time") {
  const Deployment d =
      deployment("gpu: h100-sxm\nprice: {tier: owned, usd_per_gpu: 35040, years: 4, host: 4}");  // 1 USD/h
  ServingMetrics m;
  m.duration = Seconds(100);
  m.replica_seconds = 60 + 5 * 40;
  m.paid_fleets = {{1, 0, 60}, {5, 0, 40}};  // one replica for a minute, then five
  const FleetCost cost = fleet_cost(m, d, 8);
  CHECK(cost.usd_per_hour == doctest::Approx((60 * 4 + 40 * 8) / 100.0));
  CHECK(cost.gpus == doctest::Approx(2.6));
  ServingMetrics fixed;
  fixed.duration = Seconds(100);
  CHECK(fleet_cost(fixed, d, 1).usd_per_hour == doctest::Approx(4));  // no less than the scaled fleet's at one replica
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
  for (int again = 0; again < 2; ++again) {
    CHECK(model.gpu_time_alone(1024, 0) == first.gpu_time);
    CHECK(model.gpu_time_alone(1024, 1024) == second.gpu_time);
  }
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
