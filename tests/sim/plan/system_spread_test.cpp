#include "sim/plan/system_spread.h"

#include <doctest/doctest.h>

#include <cmath>

#include "base/config_library.h"
#include "sim/plan/scenario.h"

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

TEST_CASE("system spread: wider without a recipe, and for releases newer than what is known") {
  const LoadRegime light = LoadRegime::kLight;
  const SystemSpread known = system_spread(*deployment("engine: vllm@0.19\nrecipe: dynamo"), light),
                     bare = system_spread(*deployment("engine: vllm@0.19"), light),
                     newer = system_spread(*deployment("engine: vllm@2099-01-01\nrecipe: dynamo"), light);
  const ConfigTree written = load_named("uncertainty", "serving", Mark{"test", 0, 0});
  const auto number = [&](std::initializer_list<const char*> keys) {
    ConfigTree at = written;
    for (const char* key : keys) at = *at->find(key);
    return std::stod(at->scalar);
  };
  const auto wider = [](const LogSpread& spread, double deviation) {
    return std::hypot(spread.high, 1.645 * deviation);  // the 95 % quantile of a normal law
  };
  CHECK(bare.ttft.high == doctest::Approx(wider(known.ttft, number({"unknown", "recipe", "ttft"}))));
  CHECK(bare.tpot.high == doctest::Approx(wider(known.tpot, number({"unknown", "recipe", "tpot"}))));
  CHECK(newer.ttft.high == doctest::Approx(wider(known.ttft, number({"unknown", "release", "ttft"}))));
  CHECK(newer.tpot.low < known.tpot.low);
  for (const LoadRegime regime : {LoadRegime::kLight, LoadRegime::kLoaded, LoadRegime::kSaturated}) {
    const SystemSpread spread = system_spread(*deployment("engine: vllm"), regime);
    for (const LogSpread& one : {spread.ttft, spread.tpot}) {
      CHECK(one.low < 0);
      CHECK(one.high > 0);
    }
  }
}

TEST_CASE("system spread: the ideal roofline has none") {
  const SystemSpread none = system_spread(*deployment("engine: vllm", Fidelity::kIdeal), LoadRegime::kSaturated);
  CHECK(none.ttft.high == 0);
  CHECK(none.tpot.low == 0);
}
