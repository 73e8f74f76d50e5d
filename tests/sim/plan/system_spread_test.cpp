#include "sim/plan/system_spread.h"

#include <doctest/doctest.h>

#include <cmath>

#include "base/config_library.h"
#include "sim/plan/planned_spread.h"
#include "sim/plan/scenario.h"
#include "sim/step/deployment.h"

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

TEST_CASE("system spread: decode follows the host with the share of it that is launched kernel by kernel") {
  const auto of = [](double launching) {
    return system_spread(*deployment("engine: vllm@0.19\nrecipe: dynamo"), LoadRegime::kLight,
                         {.launching = launching});
  };
  // Hosts launch at paces a factor of 1.5 apart, one standard deviation: 1.645 ln 1.5 beside the rest.
  const double whole = 1.645 * std::log(1.5);
  CHECK(of(1).tpot.high == doctest::Approx(std::hypot(of(0).tpot.high, whole)).epsilon(0.02));
  CHECK(of(0.5).tpot.high == doctest::Approx(std::hypot(of(0).tpot.high, 0.5 * whole)).epsilon(0.02));
  CHECK(of(1).tpot.low < of(0).tpot.low);
  CHECK(of(1).ttft.high == of(0).ttft.high);
}

TEST_CASE("system spread: what the host takes of a time is as far off as its costs may be") {
  const auto d = deployment("engine: vllm@0.19\nrecipe: inferencex");
  const ConfigTree written = load_named("uncertainty", "serving", SourceLocation{"test", 0, 0});
  const double factor = std::exp(1.645 * std::stod((*(*written->find("unknown"))->find("host_costs"))->scalar));
  const SystemSpread none = system_spread(*d, LoadRegime::kLight, {}),
                     some = system_spread(*d, LoadRegime::kLight, {.step = 0.3, .first = 0.6});
  // Of a time of 1, 0.7 stays, and 0.3 becomes as much as the factor says.
  CHECK(some.tpot.low == doctest::Approx(-std::hypot(none.tpot.low, std::log(0.7 + 0.3 / factor))).epsilon(1e-3));
  CHECK(some.tpot.high == doctest::Approx(std::hypot(none.tpot.high, std::log(0.7 + 0.3 * factor))).epsilon(1e-3));
  CHECK(some.ttft.high == doctest::Approx(std::hypot(none.ttft.high, std::log(0.4 + 0.6 * factor))).epsilon(1e-3));
}

TEST_CASE("system spread: kernels of another engine are as far off as those of another release") {
  const auto of = [](const char* engine) {
    const std::string keys = std::string("model: llama-3.1-8b\ngpu: b200-sxm\nrecipe: inferencex\nengine: ") + engine;
    return system_spread(*read_scenario(parse_config_text(keys, "s.yaml"), Fidelity::kCalibrated).deployment,
                         LoadRegime::kLoaded, {});
  };
  CHECK(of("sglang@0.5.10").tpot.high > 1.5 * of("vllm@0.19").tpot.high);
}

TEST_CASE("system spread: the host's shares of a step and of the time to the first token") {
  StepBreakdown decode, prefill;
  decode.host_time = Seconds(1e-3), decode.time = Seconds(4e-3);
  prefill.host_time = Seconds(2e-3), prefill.time = Seconds(8e-3);
  const HostShares shares = host_shares(decode, prefill, decode, Seconds(12e-3), Seconds(20e-3));
  CHECK(shares.step == doctest::Approx(0.25));
  CHECK(shares.first == doctest::Approx(0.7));  // 12 + 2 of 12 + 8 ms
  CHECK(shares.launching == 0);
  // Another 20 ms wait for steps, of which the host takes a quarter.
  CHECK(host_shares(decode, prefill, decode, Seconds(12e-3), Seconds(40e-3)).first ==
        doctest::Approx((12 + 2 + 5) / 40.0));
  StepBreakdown busy = prefill;
  busy.host_time = Seconds(0);  // where only prompts run, it waits for these
  CHECK(host_shares(decode, prefill, busy, Seconds(12e-3), Seconds(40e-3)).first == doctest::Approx((12 + 2) / 40.0));
  StepBreakdown eager = decode;
  eager.launched = Seconds(3e-3);
  CHECK(host_shares(eager, prefill, eager, Seconds(0), Seconds(0)).launching == doctest::Approx(0.75));
  CHECK(host_shares(eager, prefill, eager, Seconds(0), Seconds(0)).step == 0);  // part of the launching
}

TEST_CASE("system spread: errors of queues have those of the host in them") {
  const auto d = deployment("engine: vllm@0.19");
  for (const LoadRegime regime : {LoadRegime::kSaturated, LoadRegime::kQueued}) {
    const SystemSpread none = system_spread(*d, regime, {}), half = system_spread(*d, regime, {0, 0.5, 0.5});
    CHECK(none.tpot.high == half.tpot.high);
    CHECK(none.ttft.high == half.ttft.high);
  }
}

TEST_CASE("system spread: what launching takes of a step") {
  const auto share = [](const std::string& engine, int batch) {
    StepModel model(deployment(engine));
    return launched_share(model.breakdown({.decodes = batch, .decode_context = 2000.0 * batch, .prefills = {}}));
  };
  const std::string eager = "engine: {name: vllm, version: \"0.19\", cuda_graphs: {enabled: false}}";
  CHECK(share("engine: vllm@0.19", 4) == 0);
  // Beyond the largest graph a step is launched kernel by kernel.
  CHECK(share("engine: {name: vllm, version: \"0.19\", max_num_seqs: 256, cuda_graphs: {max_batch: 8}}", 16) > 0.2);
  // The host takes as long for more sequences, the GPU takes longer.
  const double few = share(eager, 1), many = share(eager, 256);
  CHECK(few > 2 * many);
  CHECK(few <= 1);
  CHECK(many > 0);
}
