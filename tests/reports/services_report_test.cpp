// Several services that are planned together: the choice, and its report.
#include "reports/services_report.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "reports/plan_report.h"
#include "sim/step/deployment.h"

using namespace roofcast;
using namespace roofcast::reports;

namespace {

constexpr const char* kLoad =
    "workload: {{arrivals: {{process: poisson, rate: {} /s}}, prompt_tokens: {{distribution: fixed, value: 512}}, "
    "output_tokens: {{distribution: fixed, value: 64}}}}, objectives: {{ttft_p90: 500 ms, tpot_p90: 40 ms}}";

std::string load(double rate) { return fmt::format(fmt::runtime(kLoad), rate); }

ConfigTree tree(const std::string& text) { return parse_config_text(text, "plan"); }

ServicesAnswer answer(const std::string& text) { return answer_services(tree(text), {}, PlanDetail::kRanking); }

const PlannedDeployment& fleet(const ServicesAnswer& a, std::size_t service) {
  return a.services[service].answer.result.ranked.front();
}

}  // namespace

TEST_CASE("services: one is the plan of it alone, to the last digit") {
  const std::string own = "model: llama-3.1-8b, " + load(30),
                    search = "search: {gpus: [l40s, h100-sxm], max_gpus: 8, tp: [1, 2]}";
  const ServicesAnswer one =
      answer_services(tree("{services: [{name: only, " + own + "}], engine: vllm, " + search + "}"), {});
  const PlanAnswer plain = answer_plan(tree("{" + own + ", engine: vllm, " + search + "}"), {});
  REQUIRE(one.complete());
  CHECK(plan_json(one.services[0].answer).dump() == plan_json(plain).dump());
  CHECK(one.joint->usd_per_hour == plain.result.ranked.front().usd_per_hour());
  CHECK(one.services[0].usd_per_hour == doctest::Approx(one.joint->usd_per_hour));
}

TEST_CASE("services: each has its fleet, and with room for all it is the one that it would have alone") {
  const ServicesAnswer both = answer("{engine: vllm, services: [{name: small, model: llama-3.1-8b, " + load(20) +
                                     "}, {name: large, model: qwen3-32b, " + load(4) +
                                     "}], search: {gpus: [l40s, h100-sxm], max_gpus: 64, tp: [1, 2]}}");
  REQUIRE(both.complete());
  double usd = 0;
  for (const ServiceAnswer& s : both.services) {
    const PlannedDeployment& p = s.answer.result.ranked.front();
    CHECK(p.probability.value_or(0) >= 0.9);
    CHECK(s.usd_per_hour <= s.usd_alone * (1 + 1e-9));
    usd += s.usd_per_hour;
  }
  CHECK(usd == doctest::Approx(both.joint->usd_per_hour));
  CHECK(fleet(both, 0).candidate.scenario.deployment->model.name == "llama-3.1-8b");
  CHECK(fleet(both, 1).candidate.scenario.deployment->model.name == "qwen3-32b");
  CHECK(both.binds.empty());
}

TEST_CASE("services: GPUs that are scarce go where they save the most") {
  // The cheap kind suffices for one of the two alone; both would like to have it.
  const auto planned = [](int available) {
    return answer(
        fmt::format("{{engine: vllm, services: [{{name: a, model: llama-3.1-8b, {}}}, {{name: b, model: "
                    "llama-3.1-8b, {}}}], search: {{gpus: [{{name: h100-sxm, price: 1 USD/h, available: {}}}, "
                    "{{name: h200-sxm, price: 10 USD/h}}], max_gpus: 64, tp: [1], confidence: 0.8}}}}",
                    load(80), load(20), available));
  };
  const ServicesAnswer enough = planned(32);
  REQUIRE(enough.complete());
  CHECK(fleet(enough, 0).candidate.gpu == "h100-sxm");
  CHECK(fleet(enough, 1).candidate.gpu == "h100-sxm");
  const int large = fleet(enough, 0).gpus(), small = fleet(enough, 1).gpus();
  REQUIRE(large > small);
  const ServicesAnswer few = planned(large);  // as many as the larger one takes
  REQUIRE(few.complete());
  CHECK(fleet(few, 0).candidate.gpu == "h100-sxm");
  CHECK(fleet(few, 1).candidate.gpu == "h200-sxm");
  REQUIRE(few.binds.size() == 1);
  CHECK(few.binds.front().what == fmt::format("the {} x h100-sxm available", large));
  CHECK(few.binds.front().usd_per_hour == doctest::Approx(enough.joint->usd_per_hour));
  // Brute force over what each would take: every other assignment is dearer or has not enough GPUs.
  const double other = 1.0 * small + 10.0 * fleet(few, 1).gpus() / small * large;
  CHECK(few.joint->usd_per_hour < other);
}

TEST_CASE("services: a host that both rent is paid for once") {
  // In machines of eight of one's own: alone each takes a whole one.
  const std::string price =
      ", price: {tier: owned, usd_per_gpu: 30000, years: 4, host: 8}, search: {gpus: [h100-sxm], max_gpus: 16, tp: "
      "[1]}}";
  const ServicesAnswer a = answer("{engine: vllm, services: [{name: a, model: llama-3.1-8b, " + load(5) +
                                  "}, {name: b, model: llama-3.1-8b, " + load(5) + "}]" + price);
  REQUIRE(a.complete());
  REQUIRE(a.joint->gpus <= 8);
  CHECK(a.joint->paid_gpus == 8);
  CHECK(a.shared.size() == 1);
  CHECK(a.services[0].usd_alone + a.services[1].usd_alone == doctest::Approx(2 * a.joint->usd_per_hour));
  CHECK(a.services[0].usd_per_hour == doctest::Approx(a.joint->usd_per_hour / 2));
}

TEST_CASE("services: impossible services are reported, the rest is planned") {
  const std::string good = "{name: good, model: llama-3.1-8b, " + load(5) + "}";
  const ServicesAnswer one = answer(
      "{engine: vllm, services: [" + good +
      ", {name: hasty, model: llama-3.1-8b, workload: {arrivals: {process: poisson, rate: 1 /s}, prompt_tokens: 512, "
      "output_tokens: 64}, objectives: {ttft_p99: 1 us}}], search: {gpus: [h100-sxm], max_gpus: 8, tp: [1]}}");
  CHECK_FALSE(one.complete());
  CHECK(no_services_plan(one) == "no fleet meets the objectives of hasty");
  REQUIRE(one.joint);
  CHECK(one.joint->chosen.size() == 1);
  CHECK(fleet(one, 0).probability.value_or(0) >= 0.9);
  const ServicesAnswer none = answer("{engine: vllm, services: [" + good + ", {name: other, model: llama-3.1-8b, " +
                                     load(5) + "}], search: {gpus: [h100-sxm], max_gpus: 1, tp: [1]}}");
  CHECK_FALSE(none.joint);
  REQUIRE_FALSE(none.binds.empty());
  CHECK(none.binds.front().what == "max_gpus (1)");
  CHECK(none.binds.front().gpus == 2);
}

TEST_CASE("services: a load that grows takes the others' fleets with it") {
  const ServicesAnswer a = answer_services(
      tree("{engine: vllm, services: [{name: grows, model: llama-3.1-8b, search: {growth: {per_month: 0.2, months: "
           "12}}, " +
           load(20) + "}, {name: stays, model: llama-3.1-8b, " + load(5) +
           "}], search: {gpus: [h100-sxm], max_gpus: 2, tp: [1]}}"),
      {});
  REQUIRE(a.complete());
  REQUIRE(a.growth.size() >= 2);
  CHECK(a.growth.front().gpus == a.joint->gpus);
  for (std::size_t i = 1; i < a.growth.size(); ++i) CHECK(a.growth[i].gpus >= a.growth[i - 1].gpus);
  // 20 x 1.2^11 = 149 requests/s are more than one GPU serves; each by itself would do with two.
  CHECK(a.growth.back().beyond == std::vector<std::string>{"max_gpus (2)"});
}

TEST_CASE("services: the report states what is rented, what is shared and how each is launched") {
  const std::string text =
      "{engine: vllm, price: {tier: owned, usd_per_gpu: 30000, years: 4, host: 8}, services: [{name: one, model: "
      "llama-3.1-8b, " +
      load(5) + "}, {name: two, model: llama-3.1-8b, " + load(5) +
      "}], search: {gpus: [h100-sxm], max_gpus: 16, tp: [1], confidence: 0}}";
  const ServicesAnswer a = answer(text);
  REQUIRE(a.complete());
  const std::string table = services_report(a, "table");
  const auto says = [&](const std::string& part) { return table.find(part) != std::string::npos; };
  CHECK(says("2 services on 2 GPUs for"));
  CHECK(says("  8 GPUs are paid for: instances are rented whole\n"));
  CHECK(says("  1 instance of 8 x h100-sxm: 1 GPU of one, 1 GPU of two\n"));
  CHECK(
      says("# on an instance of 8 x h100-sxm with one (1 GPU):\n#   CUDA_VISIBLE_DEVICES=1 and a --port of its own\n"));
  for (std::size_t from = 0, to = 0; (to = table.find('\n', from)) != std::string::npos; from = to + 1) {
    if (table.find("to launch") < from) break;
    CHECK(to - from <= 100);
  }
  const std::string csv = services_report(a, "csv");
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 3);
  CHECK(csv.starts_with("name,"));
  CHECK(services_launch(a, "vllm", "kubernetes").find("kubectl apply -n two") != std::string::npos);
  CHECK_THROWS_AS(services_launch(a, "sglang", "shell"), ConfigError);
  const auto json = services_json(a);
  CHECK(json["kind"] == "services_plan");
  CHECK(json["services"][1]["plan"]["kind"] == "plan");
  CHECK(json["total"]["usd_per_hour"] == a.joint->usd_per_hour);
  CHECK(json["shared_instances"][0]["services"].size() == 2);
}

TEST_CASE("services: each replica on a shared instance has GPUs of its own") {
  // One replica of tp 2 and a spare are four GPUs of eight; the other service has one more.
  const ServicesAnswer a = answer(
      "{engine: vllm, price: {tier: owned, usd_per_gpu: 30000, years: 4, host: 8}, services: [{name: one, model: "
      "llama-3.1-8b, search: {tp: [2], spare_replicas: 1}, " +
      load(5) + "}, {name: two, model: llama-3.1-8b, search: {tp: [1]}, " + load(5) +
      "}], search: {gpus: [h100-sxm], max_gpus: 16, confidence: 0}}");
  REQUIRE(a.complete());
  REQUIRE(a.joint->gpus == 5);
  CHECK(services_launch(a, "vllm", "shell")
            .find("# on an instance of 8 x h100-sxm with two (1 GPU):\n"
                  "#   CUDA_VISIBLE_DEVICES=0,1 and a --port of its own\n"
                  "#   CUDA_VISIBLE_DEVICES=2,3 and a --port of its own\n") != std::string::npos);
}

TEST_CASE("services: an unknown price is reported, and null in JSON") {
  const ServicesAnswer a = answer("{engine: vllm, services: [{name: one, model: llama-3.1-8b, " + load(5) +
                                  "}, {name: two, model: llama-3.1-8b, " + load(5) +
                                  "}], search: {gpus: [mi355x], max_gpus: 8, tp: [1], goal: gpus, confidence: 0}}");
  REQUIRE(a.complete());
  const std::string table = services_report(a, "table");
  CHECK(table.starts_with("2 services on 2 GPUs; price not known\n"));
  CHECK(table.find(" on 1 x mi355x; price not known\n") != std::string::npos);
  CHECK(table.find("nan ") == std::string::npos);
  const auto json = decltype(services_json(a))::parse(services_report(a, "json"));
  for (const char* key : {"usd_per_hour", "usd_per_hour_apart"}) CHECK(json["total"][key].is_null());
  CHECK(json["services"][0]["usd_per_hour_alone"].is_null());
  CHECK(json["bought"][0]["usd_per_gpu_hour"].is_null());
}

TEST_CASE("services: limits that prevent a plan only together are reported") {
  // One GPU and 3.5 USD/h, of a kind at 2 USD/h: two GPUs need both limits lifted.
  const std::string both = "{name: a, model: llama-3.1-8b, " + load(5) + "}, {name: b, model: llama-3.1-8b, " + load(5);
  const ServicesAnswer a = answer("{engine: vllm, services: [" + both +
                                  "}], search: {gpus: [{name: h100-sxm, price: 2 USD/h}], max_gpus: 1, max_cost: 3.5 "
                                  "USD/h, tp: [1], confidence: 0}}");
  REQUIRE(a.binds.size() == 1);
  CHECK(a.binds.front().all);
  CHECK(no_services_plan(a) == "each service has a fleet, but together they fit only with all limits lifted");
}
