#include "sim/plan/system_spread.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/config_library.h"
#include "sim/plan/planned_spread.h"
#include "sim/plan/scenario.h"
#include "sim/plan/truth.h"
#include "sim/step/deployment.h"
#include "sim/step/step_model.h"

using namespace roofcast;

namespace {

std::shared_ptr<const Deployment> deployment(const std::string& keys, Fidelity fidelity = Fidelity::kCalibrated) {
  return read_scenario(parse_config_text("model: llama-3.1-8b\ngpu: h100-sxm\n" + keys, "s.yaml"), fidelity).deployment;
}

}  // namespace

TEST_CASE("system spread: independent causes add their squares, each side by itself") {
  const LogSpread all = together({-0.3, 0.5}, {-0.4, 1.2});
  CHECK(all.low == doctest::Approx(-0.5));
  CHECK(all.high == doctest::Approx(1.3));
  CHECK(together({-0.3, 0.5}, {}).low == doctest::Approx(-0.3));
}

TEST_CASE("system spread: regimes by requests on a GPU, and by what there is room for") {
  const auto d = deployment("engine: {name: vllm, max_num_seqs: 64}\nparallelism: {tp: 2}");
  // Two GPUs: up to 8 are light, up to 64 places loaded.
  CHECK(load_regime(*d, 1, 8, 1000) == LoadRegime::kLight);
  CHECK(load_regime(*d, 1, 9, 1000) == LoadRegime::kLoaded);
  CHECK(load_regime(*d, 1, 64, 1000) == LoadRegime::kLoaded);
  CHECK(load_regime(*d, 1, 65, 1000) == LoadRegime::kSaturated);
  CHECK(load_regime(*d, 2, 65, 1000) == LoadRegime::kLoaded);  // on two replicas
  CHECK(load_regime(*d, 2, 16, 1000) == LoadRegime::kLight);
  // 131,072 B a token: requests of 100,000 tokens take 13 GB each, and two GPUs hold fewer than 16.
  CHECK(load_regime(*d, 1, 16, 100'000) == LoadRegime::kSaturated);
  CHECK(name_of(LoadRegime::kSaturated) == "saturated");
}

TEST_CASE("system spread: narrower where a recipe was measured, wider for other releases") {
  const LoadRegime light = LoadRegime::kLight;
  const SystemSpread known = system_spread(*deployment("engine: vllm@0.19\nrecipe: inferencex"), light, {}),
                     bare = system_spread(*deployment("engine: vllm@0.19"), light, {}),
                     newer = system_spread(*deployment("engine: vllm@2099-01-01\nrecipe: inferencex"), light, {}),
                     other = system_spread(*deployment("engine: vllm@0.24"), light, {});
  const ConfigTree written = load_named("uncertainty", "serving", SourceLocation{"test", 0, 0});
  const auto at = [&](const char* what, const char* metric) {
    ConfigTree found = written;
    for (const char* key : {"unknown", what, metric}) found = *found->find(key);
    return found;
  };
  const auto side = [&](const char* metric, std::size_t i) {
    return std::stod(at("recipe", metric)->items.at(i)->scalar);
  };
  // 1.645 deviations are the 95 % quantile of a normal law.
  const auto release = [&](const char* metric) { return 1.645 * std::stod(at("release", metric)->scalar); };
  // Without a recipe, at a release whose kernels were measured (0.24) and at another.
  CHECK(other.ttft.high == doctest::Approx(std::hypot(known.ttft.high, side("ttft", 1))));
  CHECK(other.tpot.low == doctest::Approx(-std::hypot(known.tpot.low, side("tpot", 0))));
  CHECK(bare.ttft.high == doctest::Approx(std::hypot(other.ttft.high, release("ttft"))));
  CHECK(bare.tpot.low == doctest::Approx(-std::hypot(other.tpot.low, release("tpot"))));
  CHECK(newer.ttft.high == doctest::Approx(bare.ttft.high));  // once, however it is another
  // A release that nobody names may be any; once, however little is known of it.
  const SystemSpread measured = system_spread(*deployment("engine: trtllm@1.3"), light, {}),
                     assumed = system_spread(*deployment("engine: trtllm"), light, {});
  CHECK(assumed.ttft.high == doctest::Approx(std::hypot(measured.ttft.high, release("ttft"))));
  CHECK(system_spread(*deployment("engine: vllm"), light, {}).tpot.low == doctest::Approx(bare.tpot.low));
  CHECK(system_spread(*deployment("engine: tgi"), light, {}).tpot.low <= other.tpot.low);  // it has no releases
  // A plan says what to launch and how: the host is unknown, and what kernels of another release take.
  const double host = 1.645 * std::stod(at("host", "tpot")->scalar);
  const auto in_plan = [&](const char* engine) { return planned_spread(*deployment(engine), light, {}).tpot.high; };
  CHECK(in_plan("engine: vllm@0.24") == doctest::Approx(std::hypot(known.tpot.high, host)));
  CHECK(in_plan("engine: vllm@0.19") == doctest::Approx(std::hypot(known.tpot.high, host, release("tpot"))));
  CHECK(in_plan("engine: trtllm") == in_plan("engine: trtllm@1.3"));
  CHECK(planned_spread(*deployment("engine: vllm@0.19\nrecipe: inferencex"), light, {}).tpot.high == known.tpot.high);
  // Recipes are narrower where their runs were measured: not under another release, nor one without such runs.
  for (const char* keys : {"engine: vllm@0.9\nrecipe: inferencex", "engine: vllm@0.19\nrecipe: ml-energy",
                           "engine: vllm@0.19\nrecipe: dynamo", "engine: vllm@0.2\nrecipe: splitwise"})
    CHECK(system_spread(*deployment(keys), light, {}).ttft.high == bare.ttft.high);
  const auto on = [&](const char* gpu) {
    const std::string keys = "model: llama-3.1-8b\nengine: vllm@0.19\nrecipe: inferencex\ngpu: ";
    return system_spread(*read_scenario(parse_config_text(keys + gpu, "s.yaml"), Fidelity::kCalibrated).deployment,
                         light, {});
  };
  CHECK(on("b200-sxm").tpot.high == known.tpot.high);
  CHECK(on("rtx-4090").tpot.high == bare.tpot.high);
  for (const LoadRegime regime :
       {LoadRegime::kLight, LoadRegime::kLoaded, LoadRegime::kSaturated, LoadRegime::kQueued}) {
    const SystemSpread spread = system_spread(*deployment("engine: vllm"), regime, {});
    for (const LogSpread& one : {spread.ttft, spread.tpot}) {
      CHECK(one.low < 0);
      CHECK(one.high > 0);
    }
  }
}

TEST_CASE("system spread: the ideal roofline has none") {
  const SystemSpread none = system_spread(*deployment("engine: vllm", Fidelity::kIdeal), LoadRegime::kSaturated, {});
  CHECK(none.ttft.high == 0);
  CHECK(none.tpot.low == 0);
}

TEST_CASE("system spread: what the host may be off by is an independent cause") {
  const auto d = deployment("engine: vllm@0.19\nrecipe: inferencex");
  const SystemSpread none = system_spread(*d, LoadRegime::kLight, {}),
                     some = system_spread(*d, LoadRegime::kLight, {.step = {-0.2, 0.4}, .first = {-0.3, 0.7}});
  CHECK(some.tpot.low == doctest::Approx(-std::hypot(none.tpot.low, 0.2)));
  CHECK(some.tpot.high == doctest::Approx(std::hypot(none.tpot.high, 0.4)));
  CHECK(some.ttft.low == doctest::Approx(-std::hypot(none.ttft.low, 0.3)));
  CHECK(some.ttft.high == doctest::Approx(std::hypot(none.ttft.high, 0.7)));
}

TEST_CASE("system spread: kernels of another engine are as far off as those of another release") {
  const auto of = [](const char* engine) {
    const std::string keys = std::string("model: llama-3.1-8b\ngpu: b200-sxm\nrecipe: inferencex\nengine: ") + engine;
    return system_spread(*read_scenario(parse_config_text(keys, "s.yaml"), Fidelity::kCalibrated).deployment,
                         LoadRegime::kLoaded, {});
  };
  CHECK(of("sglang@0.5.10").tpot.high > 1.5 * of("vllm@0.19").tpot.high);
}

namespace {

/// The factor by which host costs may be off.
double host_factor() {
  const ConfigTree written = load_named("uncertainty", "serving", SourceLocation{"test", 0, 0});
  return std::exp(1.645 * std::stod((*(*written->find("unknown"))->find("host_costs"))->scalar));
}
StepBreakdown step_of(double gpu, double meanwhile, double waits) {
  StepBreakdown step;
  step.time = Seconds(std::max(gpu, meanwhile) + waits);
  step.host = {Seconds(gpu), Seconds(meanwhile), step.time};
  return step;
}
LogSpread of_step(const StepBreakdown& step) { return host_spreads(step, step, step, {}, {}).step; }

}  // namespace

TEST_CASE("system spread: a time is as far off as host costs make it, hidden ones where they come out") {
  const double factor = host_factor();
  // The GPU waits 1 of 4 ms.
  CHECK(of_step(step_of(3, 0, 1)).high == doctest::Approx(std::log((3 + factor) / 4)).epsilon(1e-3));
  CHECK(of_step(step_of(3, 0, 1)).low == doctest::Approx(std::log((3 + 1 / factor) / 4)).epsilon(1e-3));
  // 2 ms of work beside the 3 of the GPU come out if they take longer; 0.5 ms do not.
  CHECK(of_step(step_of(3, 2, 0)).high == doctest::Approx(std::log(2 * factor / 3)).epsilon(1e-3));
  CHECK(of_step(step_of(3, 2, 0)).low == 0);
  CHECK(of_step(step_of(3, 0.5, 0)).high == 0);
  // Where the GPU follows the launches it is the other way round.
  CHECK(of_step(step_of(2, 3, 0)).low == doctest::Approx(std::log(2.0 / 3)).epsilon(1e-3));
  CHECK(of_step(step_of(2, 3, 0)).high == doctest::Approx(std::log(factor)).epsilon(1e-3));
  // The more work there is, the wider.
  LogSpread last;
  for (double launches = 0; launches < 30; launches += 0.5) {
    const LogSpread now = of_step(step_of(3, launches, 1));
    CHECK(now.high >= last.high - 1e-9);
    CHECK(now.low <= last.low + 1e-9);
    last = now;
  }
}

TEST_CASE("system spread: a first token waits for the front end, its prompt and steps") {
  const double factor = host_factor();
  const StepBreakdown decode = step_of(3, 0, 1), prefill = step_of(6, 0, 2);
  const auto high = [&](const StepBreakdown& other, double ttft) {
    return host_spreads(decode, prefill, other, Seconds(12), Seconds(ttft)).first.high;
  };
  CHECK(high(decode, 20) == doctest::Approx(std::log((6 + 14 * factor) / 20)).epsilon(1e-3));
  // Another 20 wait for steps, of which the host takes a quarter.
  CHECK(high(decode, 40) == doctest::Approx(std::log((6 + 15 + 19 * factor) / 40)).epsilon(1e-3));
  CHECK(high(step_of(8, 0, 0), 40) == doctest::Approx(std::log((26 + 14 * factor) / 40)).epsilon(1e-3));
  CHECK(host_spreads(StepBreakdown{}, StepBreakdown{}, StepBreakdown{}, {}, {}).first.high == 0);
}

TEST_CASE("system spread: a step launched kernel by kernel is no better known than one with CUDA graphs") {
  for (const char* gpu : {"h100-sxm", "h200-sxm", "b200-sxm"})
    for (const char* version : {"0.9", "0.19"})  // schedules between steps, and ahead
      for (const int batch : {1, 16, 200}) {
        const auto spread = [&](const char* graphs) {
          const std::string keys = std::string("model: llama-3.1-8b\nengine: {name: vllm, version: \"") + version +
                                   "\", cuda_graphs: {enabled: " + graphs + "}}\ngpu: " + gpu;
          StepModel model(read_scenario(parse_config_text(keys, "s.yaml"), Fidelity::kCalibrated).deployment);
          return of_step(model.breakdown({.decodes = batch, .decode_context = 2000.0 * batch, .prefills = {}}));
        };
        INFO(gpu, " ", version, " ", batch);
        CHECK(spread("false").high >= spread("true").high);
        CHECK(spread("false").low <= spread("true").low);
        if (batch == 1) CHECK(spread("false").high > spread("true").high + 0.05);
      }
}

TEST_CASE("system spread: drafts are part of the step, and those found on the host as uncertain as the host") {
  const auto spread = [](const std::string& drafts) {
    const Scenario s =
        read_scenario(parse_config_text("model: llama-3.1-8b\ngpu: h100-sxm\nengine: vllm@0.19\n" + drafts +
                                            "workload: {prompt_tokens: 500, output_tokens: 100, requests: 4, "
                                            "arrivals: {process: closed_loop, concurrency: 2}}\n",
                                        "s.yaml"),
                      Fidelity::kCalibrated);
    return step_spreads(s.deployment, s.serving.speculation, simulate(s.deployment, *s.workload, s.serving), 1)
        .host.step.high;
  };
  const std::string found = "speculation: {method: ngram, num_speculative_tokens: 3, acceptance: 0.5, draft_time: ";
  CHECK(spread(found + "3 ms}\n") > spread(found + "0 ms}\n") + 0.1);
  CHECK(spread(found + "3 ms}\n") > spread("") + 0.1);
}

TEST_CASE("system spread: a queue makes no step better known") {
  const auto d = deployment("engine: vllm@0.19");
  for (const LoadRegime regime : {LoadRegime::kSaturated, LoadRegime::kQueued}) {
    const HostSpreads host{.step = {-1, 2}, .first = {-0.1, 0.1}};
    const SystemSpread none = system_spread(*d, regime, {}), some = system_spread(*d, regime, host),
                       loaded = system_spread(*d, LoadRegime::kLoaded, host);
    CHECK(some.tpot.high == loaded.tpot.high);  // of the host, more than of the queue
    CHECK(some.tpot.high > none.tpot.high);
    CHECK(some.ttft.high == none.ttft.high);  // which has errors of hosts in it
  }
}
