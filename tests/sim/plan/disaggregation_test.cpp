#include "sim/plan/disaggregation.h"

#include <doctest/doctest.h>

#include "sim/plan/scenario.h"
#include "sim/step/deployment.h"

using namespace roofcast;

namespace {

Scenario scenario(const std::string& yaml) {
  return read_scenario(parse_config_text(yaml, "test.yaml"), Fidelity::kCalibrated);
}

}  // namespace

TEST_CASE("cold start: each role loads its own weights and starts its own engine") {
  const FleetSpec fleet = scenario(R"(
model: llama-3.1-8b
gpu: h100-sxm
engine: {name: vllm, start_time: 60 s}
disaggregation: {prefill: {precision: {weights: fp8}, engine: {start_time: 10 s}}}
failures: {mtbf: 1000 h}
)")
                              .serving.fleet;
  // 16.06 GB at 2 GB/s; in fp8 all but the embedding and the head, 2 x 128 256 x 4096 weights, has a byte: 9.08 GB
  CHECK(fleet.cold_start.base() == doctest::Approx(60 + 8.03).epsilon(0.001));
  CHECK(fleet.prefill_cold_start->base() == doctest::Approx(10 + 4.54).epsilon(0.001));
}

TEST_CASE("cold start: copies of weights are made on the GPU, not loaded") {
  const Scenario s = scenario(R"(
model: deepseek-r1
gpu: b200-sxm
engine: {name: trtllm, start_time: 0 s}
parallelism: {tp: 8}
failures: {mtbf: 1000 h}
)");
  const Deployment& d = *s.deployment;
  CHECK(d.memory.copied_weights > Bytes(1e9));
  // 8 bit with a scale of 4 B a 128 x 128: 669.07e9 weights of attention and feed-forwards, 669.23 GB; that attention's
  // first projection, 61 x 7168 x 2112, is on each of eight GPUs, another 7 x 0.92 = 6.47 GB. 16 bit: embedding and
  // head 2 x 129 280 x 7168, 3.71 GB; on each GPU the routers' 58 x 7168 x 256, 1.70 GB, and norms, 0.02 GB. 681.12 GB
  // at 2 GB/s; with the copies it would be 348 s.
  CHECK(s.serving.fleet.cold_start.base() == doctest::Approx(340.56).epsilon(1e-5));
  CHECK_FALSE(s.serving.fleet.prefill_cold_start);
}
