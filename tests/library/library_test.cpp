// The public headers alone, as another program uses them.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "roofcast/roofcast.h"
#include "tests/cli/run_program.h"

using roofcast::Result;
using roofcast::Scenario;
using roofcast::testing::run_roofcast;

namespace {

std::string error_of(const auto& call) {
  try {
    call();
  } catch (const roofcast::Error& error) {
    return error.what();
  }
  return "no error";
}

Scenario small() { return Scenario().set("model", "llama-3.1-8b").set("gpu", "h100-sxm"); }

const char* const kLoad =
    "{model: llama-3.1-8b, gpu: h100-sxm, workload: {arrivals: {process: poisson, rate: 20 /s}, prompt_tokens: 100, "
    "output_tokens: 20, requests: 100}}";

}  // namespace

TEST_CASE("library: an estimate is what the program prints") {
  const Result result = roofcast::estimate(small().set("parallelism.tp", 2), {.batch = 8, .output_tokens = 64});
  CHECK(result.json() ==
        run_roofcast("estimate --model llama-3.1-8b --gpu h100-sxm --tp 2 --batch 8 --output-tokens 64 --format json")
            .out);
  CHECK(result.kind() == "estimate");
  CHECK(result.answered());
}

TEST_CASE("library: a simulation is what the program prints, at either fidelity") {
  CHECK(roofcast::simulate(Scenario::from_file("chat-70b-4xh100").set("workload.requests", 20)).json() ==
        run_roofcast("simulate chat-70b-4xh100 --set workload.requests=20 --format json").out);
  CHECK(roofcast::simulate(Scenario::from_file("chat-70b-4xh100").set("workload.requests", 20),
                           {.fidelity = roofcast::Fidelity::ideal})
            .json() ==
        run_roofcast("simulate chat-70b-4xh100 --set workload.requests=20 --fidelity ideal --format json").out);
}

TEST_CASE("library: a plan ranks deployments, or says why there are none") {
  Scenario scenario = Scenario::from_text(kLoad).set("search", "{gpus: [h100-sxm], max_gpus: 2, tp: [1]}");
  const Result found = roofcast::plan(scenario.set("objectives", "{ttft_p90: 1 s}"));
  CHECK(found.answered());
  REQUIRE(found.size("deployments") >= 1);
  CHECK(found.text("deployments.0.gpu") == "h100-sxm");
  const Result none = roofcast::plan(scenario.set("objectives", "{ttft_p90: 1 us}"));
  CHECK_FALSE(none.answered());
  CHECK(none.reason().find("no deployment") == 0);
}

TEST_CASE("library: numbers by key, each in its unit") {
  const Result result = roofcast::estimate(small(), {.batch = 4});
  const double ms = result.number("ttft_ms");
  CHECK(result.time("ttft_ms").count() == doctest::Approx(ms / 1000));
  CHECK(roofcast::Milliseconds(result.time("ttft_ms")).count() == doctest::Approx(ms));
  CHECK(result.time("operators.0.time_us").count() == doctest::Approx(result.number("operators.0.time_us") / 1e6));
  CHECK(result.bytes("memory.weight_bytes").gigabytes() == doctest::Approx(result.number("memory.weight_bytes") / 1e9));
  CHECK(result.flag("memory.fits"));
  CHECK(result.text("precision.weights") == "bf16");
  CHECK_FALSE(result.has("no.such"));
  CHECK(result.keys("precision") == std::vector<std::string>{"weights", "activations", "kv_cache"});
  CHECK(result.keys().front() == "kind");
  CHECK(error_of([&] {
          (void)result.number("memory.weights");
        }).find("memory.weights: unknown key of the estimate 'weights'; nearest is 'weight_bytes' (valid: ") == 0);
  CHECK(error_of([&] {
          (void)result.number("operators.x.time_us");
        }).find("operators.x.time_us: 'x' is no position in a list of ") == 0);
  CHECK(error_of([&] { (void)result.number("model.size"); }) ==
        "model.size: the estimate has a value there, and nothing in it");
  CHECK(error_of([&] { (void)result.number("model"); }) == "model: is not a number");
  CHECK(error_of([&] { (void)result.time("output_tokens_per_s"); }).find("is not a time") != std::string::npos);
  CHECK(error_of([&] { (void)result.bytes("ttft_ms"); }) == "ttft_ms: is not a number of bytes");
  CHECK(error_of([&] { (void)result.bytes("machine.memory_bytes_per_s"); }) ==
        "machine.memory_bytes_per_s: is not a number of bytes");
}

TEST_CASE("library: what does not fit is a value") {
  const Result estimate = roofcast::estimate(small().set("model", "llama-3.1-405b"));
  CHECK_FALSE(estimate.answered());
  CHECK(estimate.reason().find("does not fit") != std::string::npos);
  CHECK_FALSE(estimate.flag("memory.fits"));
  const Result run = roofcast::simulate(Scenario::from_text(kLoad).set("model", "llama-3.1-405b"));
  CHECK_FALSE(run.answered());
  CHECK(run.json().empty());
  CHECK(error_of([&] { (void)run.number("completed"); }).find("completed: the simulation has no answer: ") == 0);
}

TEST_CASE("library: a plan and a scenario may have one name") {
  CHECK(Scenario::from_plan("offline-70b-2xh100").yaml().find("search:") != std::string::npos);
  CHECK(Scenario::from_file("offline-70b-2xh100").yaml().find("search:") == std::string::npos);
}

TEST_CASE("library: errors say where") {
  CHECK(error_of([] { (void)Scenario::from_text("model: [", "mine.yaml"); }).find("mine.yaml:1:") == 0);
  const Scenario typo = Scenario::from_text("{model: llama-3.1-8b, gpu: h100-sxm}\n").set("parallelism.tpp", 2);
  CHECK(error_of([&] { (void)roofcast::estimate(typo); }).find("parallelism.tpp: unknown key 'tpp'") == 0);
  CHECK(error_of([] { (void)Scenario::from_file("no-such"); }).find("from_file: unknown scenario 'no-such'") == 0);
  CHECK(error_of([] { (void)Scenario::from_plan("no-such"); }).find("from_plan: unknown plan 'no-such'") == 0);
  CHECK(error_of([] { (void)roofcast::estimate(small(), {.batch = 0}); }) == "batch: must be from 1 to 1000000, got 0");
}

TEST_CASE("library: what the program says beside an answer is a note") {
  CHECK(roofcast::estimate(small()).notes().empty());
  const Result idle = roofcast::estimate(small().set("routing.skew", 1));  // of a model without experts
  REQUIRE(idle.notes().size() == 1);
  CHECK(idle.notes().front().find("routing changes nothing") == 0);
}

TEST_CASE("library: a copied scenario keeps its own keys") {
  const Scenario one = small();
  Scenario two = one;
  two.set("parallelism.tp", 2);
  CHECK(one.yaml().find("tp") == std::string::npos);
  CHECK(Scenario::from_text(two.yaml()).yaml() == two.yaml());
}
